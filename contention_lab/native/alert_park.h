/* Sleeping on a word, as in park.h, of the thread that runs signal handlers: none is missed.
 *
 * A signal ends a sleep, but not one that is only about to begin: one that comes between the last look for
 * signals and the sleep would be seen by nobody until something else ends it. So the kernel compares two
 * words before it puts the thread to sleep (futex_waitv, Linux 5.16): the caller's, and the one that the
 * interpreter's own C handler writes to. Where one of these is missing, no sleep is longer than 20 ms.
 */
#ifndef CL_ALERT_PARK_H
#define CL_ALERT_PARK_H

#include "park.h"
#include "pycompat.h"

#define CL_ALERT_SLEEP_NS 20000000u

static inline int
cl_signal_pending(void)
{
    const uint32_t *word;
    uint32_t quiet;
    return cl_signal_word(&word, &quiet);
}

#if defined(__linux__) && !defined(CL_NO_FUTEX) && defined(FUTEX_WAITV_MAX) && defined(SYS_futex_waitv) \
    && __SIZEOF_POINTER__ == 8

static _Atomic int cl_cannot_wait_for_two; /* the kernel is older, or forbids it */

/* As cl_park(), and -1 where this cannot be done. `signals` is a word that is `quiet` as long as none comes. */
static int
cl_park_on_two(_Atomic uint32_t *word, uint32_t expected, const uint32_t *signals, uint32_t quiet,
               uint64_t deadline)
{
    if (atomic_load_explicit(&cl_cannot_wait_for_two, memory_order_relaxed)) {
        return -1;
    }
    struct futex_waitv both[2] = {
        {.uaddr = (uintptr_t)word, .val = expected, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
        {.uaddr = (uintptr_t)signals, .val = quiet, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG}};
    struct timespec until = cl_timespec(deadline);
    long result = syscall(SYS_futex_waitv, both, 2, 0, deadline == CL_FOREVER ? NULL : &until, CLOCK_MONOTONIC);
    if (result >= 0 || errno == EAGAIN) {
        return CL_PARK_WOKEN; /* also for a signal that has just come: the caller's next look finds it */
    }
    if (errno == ETIMEDOUT || errno == EINTR) {
        return errno == ETIMEDOUT ? CL_PARK_TIMED_OUT : CL_PARK_SIGNAL;
    }
    atomic_store_explicit(&cl_cannot_wait_for_two, 1, memory_order_relaxed);
    return -1;
}

#else

static int
cl_park_on_two(_Atomic uint32_t *word, uint32_t expected, const uint32_t *signals, uint32_t quiet,
               uint64_t deadline)
{
    (void)word;
    (void)expected;
    (void)signals;
    (void)quiet;
    (void)deadline;
    return -1;
}

#endif

/* As cl_park(), for the thread that runs signal handlers, which is to run them on CL_PARK_SIGNAL. */
static int
cl_park_alert(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline)
{
    const uint32_t *signals;
    uint32_t quiet;
    int pending = cl_signal_word(&signals, &quiet);
    if (pending > 0) {
        return CL_PARK_SIGNAL;
    }
    int woken = pending < 0 ? -1 : cl_park_on_two(word, expected, signals, quiet, deadline);
    if (woken >= 0) {
        return woken;
    }
    uint64_t soon = cl_monotonic_ns() + CL_ALERT_SLEEP_NS;
    woken = cl_park(word, expected, soon < deadline ? soon : deadline);
    return woken == CL_PARK_TIMED_OUT && soon < deadline ? CL_PARK_SIGNAL : woken;
}

#endif
