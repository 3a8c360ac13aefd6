/* How a SpinLock waits: test-and-test-and-set with a pause instruction; if asked, exponential back-off,
 * sched_yield after some rounds, parking after some more. Runs without the GIL.
 *
 * On a build with a GIL only the tests are done here: once the lock is seen free, the caller takes the GIL
 * and does the test-and-set. So a SpinLock is never held by a thread that waits for the GIL, and whoever
 * runs meanwhile can use it. (A Mutex, like threading.Lock, is acquired first.)
 */
#ifndef CL_WAIT_SPIN_H
#define CL_WAIT_SPIN_H

#include "spinner.h"

#define CL_BACKOFF_LIMIT 1024

static int
cl_wait_spin(cl_lock *lock, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    uint32_t delay = 1;
    cl_spinner spinner = cl_spinner_begin(lock, deadline, timed);
    int result = CL_SPIN_ON;
    while (result == CL_SPIN_ON && spinner.rounds < lock->park_after) {
        /* relaxed: only a look; the compare-and-swap that follows does the ordering */
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == CL_FREE) {
            if (!CL_FREE_THREADED) {
                result = CL_WAIT_FREE;
                break;
            }
            if (cl_word_try(lock)) {
                /* At once: whatever comes next, we may be preempted before it, as a holder. */
                parts->acquired_at = timed ? cl_now_after() : 0;
                result = CL_WAIT_ACQUIRED;
                break;
            }
        }
        result = cl_spinner_round(&spinner, delay);
        if (lock->backoff && delay < CL_BACKOFF_LIMIT) {
            delay *= 2;
        }
    }
    cl_spinner_end(&spinner, parts);
    return result != CL_SPIN_ON ? result : cl_wait_parked(lock, deadline, timed, parts);
}

#endif
