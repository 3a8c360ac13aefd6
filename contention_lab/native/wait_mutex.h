/* How a Mutex waits: asleep at once. Runs without the GIL. */
#ifndef CL_WAIT_MUTEX_H
#define CL_WAIT_MUTEX_H

#include "alert_park.h"
#include "lock_object.h"

/* What a wait was made of, for the record, and what may end it. */
typedef struct {
    int alert; /* it is to end for signal handlers, which this thread runs */
    uint64_t spin_ns, park_ns, spin_cpu_ns, spins;
    uint64_t acquired_at; /* when the lock became ours, ns since the start of the recording */
    uint64_t cpu_at_end;  /* thread CPU time at that moment, 0 not measured */
    uint32_t preemptions_at_end; /* likewise, see cl_thread_preemptions() */
} cl_wait_parts;

/* CL_WAIT_FREE: the lock was seen free; take the GIL, then try it. */
enum { CL_WAIT_ACQUIRED, CL_WAIT_TIMED_OUT, CL_WAIT_SIGNAL, CL_WAIT_FREE };

/* Parks until the lock is ours. `deadline` is in CLOCK_MONOTONIC ns. CL_WAIT_SIGNAL: look for signals,
 * then call again. Marking the state "parked" on every attempt costs one needless wake-up at worst and
 * never loses one. */
static int
cl_wait_parked(cl_lock *lock, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    for (;;) {
        /* acquire, as in cl_word_try() */
        if (atomic_exchange_explicit(&lock->state, CL_HELD_PARKED, memory_order_acquire) == CL_FREE) {
            parts->acquired_at = timed ? cl_now_after() : 0;
            return CL_WAIT_ACQUIRED;
        }
        uint64_t before = timed ? cl_now() : 0;
        int woken = parts->alert ? cl_park_alert(&lock->state, CL_HELD_PARKED, deadline)
                                 : cl_park(&lock->state, CL_HELD_PARKED, deadline);
        if (timed) {
            parts->park_ns += cl_now() - before;
        }
        if (woken != CL_PARK_WOKEN) {
            return woken == CL_PARK_TIMED_OUT ? CL_WAIT_TIMED_OUT : CL_WAIT_SIGNAL;
        }
    }
}

#endif
