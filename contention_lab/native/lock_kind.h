/* The operations of a lock, whatever its kind: try, unlock, wait, look, reset. Here alone kinds differ.
 *
 * A wait ends with the lock in hand (CL_WAIT_ACQUIRED) or without any claim to it: whoever gives up a place
 * in a queue has left it behind. So signal handlers run without a place, and may use the lock themselves.
 */
#ifndef CL_LOCK_KIND_H
#define CL_LOCK_KIND_H

#include "wait_adaptive.h"
#include "wait_mcs.h"
#include "wait_rw.h"
#include "wait_spin.h"
#include "wait_ticket.h"

static __attribute__((noinline)) int
cl_other_try(cl_lock *lock)
{
    switch (lock->kind) {
    case CL_KIND_ADAPTIVE:
        return cl_adaptive_try((cl_adaptive_lock *)lock);
    case CL_KIND_TICKET:
        return cl_ticket_try((cl_ticket_lock *)lock);
    case CL_KIND_MCS:
        return cl_mcs_try((cl_mcs_lock *)lock);
    default:
        return cl_rw_try(lock);
    }
}

/* Whether the lock is ours now. */
static inline int
cl_lock_try(cl_lock *lock)
{
    return __builtin_expect(lock->kind <= CL_KIND_SPIN, 1) ? cl_word_try(lock) : cl_other_try(lock);
}

/* Whether `state` is all of the lock. */
static inline int
cl_lock_is_word(const cl_lock *lock)
{
    return lock->kind <= CL_KIND_ADAPTIVE;
}

static __attribute__((noinline)) uint32_t
cl_other_unlock(cl_lock *lock)
{
    switch (lock->kind) {
    case CL_KIND_TICKET:
        return cl_ticket_unlock((cl_ticket_lock *)lock);
    case CL_KIND_MCS:
        return cl_mcs_unlock((cl_mcs_lock *)lock);
    default:
        return cl_rw_unlock(lock);
    }
}

/* CL_FREE: it was not held. */
static inline uint32_t
cl_lock_unlock(cl_lock *lock)
{
    return __builtin_expect(cl_lock_is_word(lock), 1) ? cl_word_unlock(lock) : cl_other_unlock(lock);
}

static __attribute__((noinline)) int
cl_other_is_held(cl_lock *lock)
{
    switch (lock->kind) {
    case CL_KIND_TICKET:
        return cl_ticket_is_held((cl_ticket_lock *)lock);
    case CL_KIND_MCS:
        return cl_mcs_is_held((cl_mcs_lock *)lock);
    default:
        return cl_rw_inside(lock) != 0;
    }
}

static inline int
cl_lock_is_held(cl_lock *lock)
{
    return __builtin_expect(cl_lock_is_word(lock), 1)
               ? atomic_load_explicit(&lock->state, memory_order_relaxed) != CL_FREE
               : cl_other_is_held(lock);
}

/* The lock whose holder is in the way of whoever waits for this one. */
static inline cl_lock *
cl_lock_in_the_way(cl_lock *lock)
{
    return lock->kind >= CL_KIND_READ ? cl_rw_in_the_way(lock) : lock;
}

/* One of the results in wait_mutex.h. Runs without the GIL. */
static int
cl_lock_wait(cl_lock *lock, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    switch (lock->kind) {
    case CL_KIND_SPIN:
        return cl_wait_spin(lock, deadline, timed, parts);
    case CL_KIND_ADAPTIVE:
        return cl_wait_adaptive((cl_adaptive_lock *)lock, deadline, timed, parts);
    case CL_KIND_TICKET:
        return cl_wait_ticket((cl_ticket_lock *)lock, deadline, timed, parts);
    case CL_KIND_MCS:
        return cl_wait_mcs((cl_mcs_lock *)lock, deadline, timed, parts);
    case CL_KIND_READ:
    case CL_KIND_WRITE:
        return cl_wait_rw(lock, deadline, timed, parts);
    default:
        return cl_wait_parked(lock, deadline, timed, parts);
    }
}

/* Free, without waiters, whoever held it: in a forked child. */
static void
cl_lock_reset(cl_lock *lock)
{
    if (lock->kind == CL_KIND_TICKET) {
        cl_ticket_reset((cl_ticket_lock *)lock);
    }
    else if (lock->kind == CL_KIND_MCS) {
        cl_mcs_reset((cl_mcs_lock *)lock);
    }
    else if (lock->kind >= CL_KIND_READ) {
        cl_rw_reset(cl_rw_of(lock));
    }
    atomic_store_explicit(&lock->state, CL_FREE, memory_order_release);
}

#endif
