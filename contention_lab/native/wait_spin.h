/* How a SpinLock waits: test-and-test-and-set with a pause instruction; if asked, exponential back-off,
 * sched_yield after some rounds, parking after some more. Runs without the GIL.
 *
 * On a build with a GIL only the tests are done here: once the lock is seen free, the caller takes the GIL
 * and does the test-and-set. So a SpinLock is never held by a thread that waits for the GIL, and whoever
 * runs meanwhile can use it. (A Mutex, like threading.Lock, is acquired first.)
 *
 * A spinner makes no system call that a signal could interrupt, so on the main thread it comes back
 * every 20 ms to let the caller look for one: a spinner that is alone with a dead holder can be stopped
 * with Ctrl-C.
 */
#ifndef CL_WAIT_SPIN_H
#define CL_WAIT_SPIN_H

#include <sched.h>

#include "wait_mutex.h"

#define CL_SPIN_BATCH 128          /* rounds between two looks at the clock */
#define CL_SPIN_MEASURE_NS 20000u  /* shorter spins are not worth two system calls (0.8 us) */
#define CL_SPIN_SIGNAL_NS 20000000u
#define CL_BACKOFF_LIMIT 1024

static inline void
cl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory"); /* `yield` is a no-op on most cores */
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

/* CPU time of one stretch of spinning: a reading is taken only once it has lasted a while; what came
 * before it counts as CPU time in full. */
typedef struct {
    uint64_t start, cpu_zero, wall_zero;
} cl_spin_meter;

static void
cl_spin_finish(cl_spin_meter *meter, int timed, cl_wait_parts *parts)
{
    if (!timed) {
        return;
    }
    uint64_t end = parts->acquired_at > meter->start ? parts->acquired_at : cl_now();
    parts->spin_ns += end - meter->start;
    if (meter->wall_zero != 0) {
        uint64_t cpu = cl_thread_cpu_ns();
        parts->spin_cpu_ns += cpu - meter->cpu_zero + (meter->wall_zero - meter->start);
        parts->cpu_at_end = cpu;
        parts->preemptions_at_end = cl_thread_preemptions();
    }
}

static int
cl_wait_spin(cl_lock *lock, uint64_t deadline, int timed, int main_thread, cl_wait_parts *parts)
{
    uint32_t rounds = 0, delay = 1;
    uint64_t began = cl_monotonic_ns();
    cl_spin_meter meter = {timed ? cl_now() : 0, 0, 0};
    int result = -1;
    while (result < 0) {
        /* relaxed: only a look; the compare-and-swap that follows does the ordering */
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == CL_FREE) {
            if (!CL_FREE_THREADED) {
                result = CL_WAIT_FREE;
                break;
            }
            if (cl_lock_try(lock)) {
                /* At once: whatever comes next, we may be preempted before it, as a holder. */
                parts->acquired_at = timed ? cl_now_after() : 0;
                result = CL_WAIT_ACQUIRED;
                break;
            }
        }
        rounds++;
        if (rounds >= lock->park_after) {
            break;
        }
        if (rounds >= lock->yield_after) {
            sched_yield();
        }
        else {
            for (uint32_t i = 0; i < delay; i++) {
                cl_pause();
            }
            if (lock->backoff && delay < CL_BACKOFF_LIMIT) {
                delay *= 2;
            }
        }
        if (rounds % CL_SPIN_BATCH == 0 || delay > CL_SPIN_BATCH || rounds >= lock->yield_after) {
            uint64_t now = cl_monotonic_ns();
            if (now >= deadline) {
                result = CL_WAIT_TIMED_OUT;
            }
            else if (main_thread && now - began >= CL_SPIN_SIGNAL_NS) {
                result = CL_WAIT_SIGNAL;
            }
            else if (timed && meter.wall_zero == 0 && now - began >= CL_SPIN_MEASURE_NS) {
                meter.cpu_zero = cl_thread_cpu_ns();
                meter.wall_zero = cl_now();
            }
        }
    }
    parts->spins += rounds;
    cl_spin_finish(&meter, timed, parts);
    return result >= 0 ? result : cl_wait_parked(lock, deadline, timed, parts);
}

#endif
