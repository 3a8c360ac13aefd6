/* Sleeping until a 32-bit word changes: a futex on Linux, elsewhere a small table of pthread mutexes
 * and conditions hashed by address (also on Linux with -DCL_NO_FUTEX, to test it).
 *
 * Neither keeps the caller's promise that it holds the lock afterwards: wake-ups may be spurious.
 */
#ifndef CL_PARK_H
#define CL_PARK_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "clock.h"

#define CL_FOREVER UINT64_MAX

enum { CL_PARK_WOKEN, CL_PARK_TIMED_OUT, CL_PARK_SIGNAL };

#if defined(__linux__) && !defined(CL_NO_FUTEX)

#  include <linux/futex.h>
#  include <sys/syscall.h>
#  include <unistd.h>

static inline struct timespec
cl_timespec(uint64_t deadline)
{
    return (struct timespec){.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};
}

/* Sleeps while *word == expected, until `deadline` (CLOCK_MONOTONIC, ns). The kernel compares and
 * queues in one step, so a wake-up between our check and our sleep is not lost. */
static int
cl_park(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline)
{
    struct timespec until = cl_timespec(deadline);
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                          deadline == CL_FOREVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (result == 0 || errno == EAGAIN) {
        return CL_PARK_WOKEN;
    }
    return errno == ETIMEDOUT ? CL_PARK_TIMED_OUT : errno == EINTR ? CL_PARK_SIGNAL : CL_PARK_WOKEN;
}

static void
cl_unpark_one(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

static inline void
cl_unpark_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}

#else

#  define CL_PARK_BUCKETS 64

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} cl_park_table[CL_PARK_BUCKETS] = {
    [0 ... CL_PARK_BUCKETS - 1] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}};

static unsigned
cl_park_bucket(const void *word)
{
    return (unsigned)(((uintptr_t)word >> 4) * 2654435761u >> 8) % CL_PARK_BUCKETS;
}

/* pthread conditions do not report signals, so nobody sleeps longer than 20 ms at a time. */
static int
cl_park(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline)
{
    unsigned bucket = cl_park_bucket((const void *)word);
    uint64_t now = cl_monotonic_ns();
    uint64_t sleep = 20000000u;
    if (deadline != CL_FOREVER) {
        if (deadline <= now) {
            return CL_PARK_TIMED_OUT;
        }
        sleep = deadline - now < sleep ? deadline - now : sleep;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t nsec = (uint64_t)until.tv_nsec + sleep;
    until.tv_sec += (time_t)(nsec / 1000000000u);
    until.tv_nsec = (long)(nsec % 1000000000u);
    int result = 0;
    pthread_mutex_lock(&cl_park_table[bucket].mutex);
    /* The waker changes the word before it takes this mutex, so a change is seen here or wakes us. */
    if (atomic_load_explicit(word, memory_order_acquire) == expected) {
        result = pthread_cond_timedwait(&cl_park_table[bucket].changed,
                                        &cl_park_table[bucket].mutex, &until);
    }
    pthread_mutex_unlock(&cl_park_table[bucket].mutex);
    if (result != ETIMEDOUT) {
        return CL_PARK_WOKEN;
    }
    return deadline != CL_FOREVER && cl_monotonic_ns() >= deadline ? CL_PARK_TIMED_OUT
                                                                   : CL_PARK_SIGNAL;
}

/* Different words may share a bucket, so all are woken and look again. */
static void
cl_unpark_all(_Atomic uint32_t *word)
{
    unsigned bucket = cl_park_bucket((const void *)word);
    pthread_mutex_lock(&cl_park_table[bucket].mutex);
    pthread_cond_broadcast(&cl_park_table[bucket].changed);
    pthread_mutex_unlock(&cl_park_table[bucket].mutex);
}

static void
cl_unpark_one(_Atomic uint32_t *word)
{
    cl_unpark_all(word);
}

#endif

#endif
