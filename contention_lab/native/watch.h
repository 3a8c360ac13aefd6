/* Watching what is done under a lock while somebody waits on a condition of it.
 *
 * Whether the waiter's predicate can become true is decided by what others do under the lock, and they need
 * not contend for it: readers that come and go under a user's readers-writer lock never block each other. So
 * while somebody waits, every hold of the lock is recorded with its site, up to a number for each tenth of a
 * second; the first ones with the stack at the release, which says from where the site is reached. Locks that the standard library keeps inside queues, events and the like are not watched.
 */
#ifndef CL_WATCH_H
#define CL_WATCH_H

#include "lock_object.h"

#define CL_WATCHED_HOLDS 4096u
#define CL_WATCHED_STACKS 64u /* of these */
#define CL_WATCH_PERIOD_NS 100000000u
#define CL_HOLD_WANTS_STACK 0x100u /* in the flags of a hold, until it is recorded */

/* Whether the lock is one that the program waits on by itself: made by its own code, or by a Condition. */
static int
cl_watchable(const cl_lock *lock)
{
    return lock->type_name == NULL
           && (lock->via == NULL
               || PyUnicode_CompareWithASCIIString(lock->via->co_qualname, "Condition.__init__") == 0);
}

static void
cl_watch_begin(cl_lock *lock)
{
    uint64_t now = cl_now();
    uint64_t since = atomic_load_explicit(&lock->watched_since, memory_order_relaxed);
    if (since == 0 || now < since || now - since >= CL_WATCH_PERIOD_NS) {
        atomic_store_explicit(&lock->watched_since, now | 1u, memory_order_relaxed);
        atomic_store_explicit(&lock->watched_left, CL_WATCHED_HOLDS, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&lock->watchers, 1, memory_order_relaxed);
}

static void
cl_watch_end(cl_lock *lock)
{
    uint32_t watchers = atomic_load_explicit(&lock->watchers, memory_order_relaxed);
    while (watchers != 0
           && !atomic_compare_exchange_weak_explicit(&lock->watchers, &watchers, watchers - 1,
                                                     memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* The flags of a hold that is to be recorded because it is watched, whoever contends for it; else 0. */
static inline uint32_t
cl_watched(cl_lock *lock)
{
    if (__builtin_expect(atomic_load_explicit(&lock->watchers, memory_order_relaxed) == 0, 1)) {
        return 0;
    }
    uint32_t left = atomic_load_explicit(&lock->watched_left, memory_order_relaxed);
    if (left == 0) {
        return 0;
    }
    atomic_store_explicit(&lock->watched_left, left - 1, memory_order_relaxed);
    return CL_HOLD_WATCHED | (left > CL_WATCHED_HOLDS - CL_WATCHED_STACKS ? CL_HOLD_WANTS_STACK : 0u);
}

#endif
