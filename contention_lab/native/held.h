/* Which locks each thread holds, and in which order it takes them.
 *
 * A thread that acquires a lock while it holds others writes one ORDER record for each of these, but only
 * the first time it does so with these locks at these places: a small cache remembers what it has written.
 * Where nothing is held, that costs the look at a counter.
 *
 * A lock that one thread acquires and another releases is a signal and not a mutex: nobody "holds" it.
 * It is recognised at the first such release, and from then on left out; one ORDER record says so, of what
 * was written before. The thread that had it in its list takes it out before it looks at the list again.
 */
#ifndef CL_HELD_H
#define CL_HELD_H

#include "lock_object.h"

#define CL_HANDED 1024 /* locks recognised as signals, by id; a later one takes the place of an earlier */
#define CL_MOST_ORDERS 16384u /* acquisitions that a thread writes down, about a second's work in all */

static _Atomic uint32_t cl_handed[CL_HANDED];
static _Atomic uint32_t cl_handed_count;

static inline uint32_t
cl_held_count(const cl_thread *thread)
{
    return atomic_load_explicit(&thread->held_count, memory_order_relaxed);
}

static inline uint64_t
cl_held_what(const cl_thread *thread, uint32_t at)
{
    return atomic_load_explicit(&thread->held[at].what, memory_order_relaxed);
}

/* Takes out one entry; those above it move down. */
static void
cl_held_remove_at(cl_thread *thread, uint32_t at)
{
    uint32_t last = cl_held_count(thread) - 1;
    for (; at < last; at++) {
        cl_held *next = &thread->held[at + 1];
        atomic_store_explicit(&thread->held[at].what,
                              atomic_load_explicit(&next->what, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&thread->held[at].since,
                              atomic_load_explicit(&next->since, memory_order_relaxed),
                              memory_order_relaxed);
    }
    atomic_store_explicit(&thread->held_count, last, memory_order_release);
}

/* A lock that is not the one taken last. */
static void
cl_held_remove(cl_thread *thread, uint32_t lock_id)
{
    for (uint32_t at = cl_held_count(thread); at-- > 0;) {
        if (cl_held_what(thread, at) >> 32 == lock_id) {
            cl_held_remove_at(thread, at);
            return;
        }
    }
    if (thread->held_lost > 0) {
        thread->held_lost--;
    }
}

/* The thread has acquired the lock. */
static inline void
cl_held_push(cl_thread *thread, const cl_lock *lock, uint32_t site, uint64_t since)
{
    uint32_t count = cl_held_count(thread);
    if (__builtin_expect(atomic_load_explicit(&lock->handed_off, memory_order_relaxed), 0)) {
        return;
    }
    if (__builtin_expect(count == CL_MOST_HELD, 0)) {
        thread->held_lost++;
        return;
    }
    atomic_store_explicit(&thread->held[count].what, (uint64_t)lock->id << 32 | site,
                          memory_order_relaxed);
    atomic_store_explicit(&thread->held[count].since, since, memory_order_relaxed);
    /* release: the writer, which loads the counter with acquire, finds the entry whole */
    atomic_store_explicit(&thread->held_count, count + 1, memory_order_release);
}

/* The thread has released the lock, which it had acquired itself. */
static inline void
cl_held_pop(cl_thread *thread, uint32_t lock_id)
{
    uint32_t count = cl_held_count(thread);
    if (__builtin_expect(count != 0 && cl_held_what(thread, count - 1) >> 32 == lock_id, 1)) {
        atomic_store_explicit(&thread->held_count, count - 1, memory_order_release);
        return;
    }
    cl_held_remove(thread, lock_id);
}

/* The lock has been released by `thread`, which had not acquired it. */
static void
cl_held_hand_off(cl_thread *thread, cl_lock *lock)
{
    if (atomic_exchange_explicit(&lock->handed_off, 1, memory_order_relaxed) == 0) {
        cl_order_record order = {
            .time_ns = cl_now(), .thread = thread->id, .lock = lock->id, .flags = CL_ORDER_SIGNAL};
        cl_thread_record(thread, CL_ORDER, &order, sizeof order);
    }
    atomic_store_explicit(&cl_handed[lock->id % CL_HANDED], lock->id, memory_order_relaxed);
    /* release: whoever sees the new count sees the entry */
    atomic_fetch_add_explicit(&cl_handed_count, 1, memory_order_release);
}

/* Takes out what others have released. */
static void
cl_held_purge(cl_thread *thread)
{
    uint32_t handed = atomic_load_explicit(&cl_handed_count, memory_order_acquire);
    if (handed == thread->handed_seen) {
        return;
    }
    thread->handed_seen = handed;
    for (uint32_t at = cl_held_count(thread); at-- > 0;) {
        uint32_t id = (uint32_t)(cl_held_what(thread, at) >> 32);
        if (atomic_load_explicit(&cl_handed[id % CL_HANDED], memory_order_relaxed) == id) {
            cl_held_remove_at(thread, at);
        }
    }
}

/* Whether what the key stands for is to be written down, which then happens once. */
static inline int
cl_order_is_new(cl_thread *thread, uint64_t key)
{
    uint64_t *slot = &thread->order_cache[key % CL_ORDER_CACHE];
    if (__builtin_expect(*slot == key || thread->orders == CL_MOST_ORDERS, 1)) {
        return 0;
    }
    *slot = key;
    return 1;
}

/* Writes down that a party takes a lock while it holds others. */
static void
cl_order_write(cl_thread *thread, uint32_t party, const cl_lock *lock, int timed, const uint64_t *held,
               uint32_t count)
{
    uint64_t now = cl_now();
    cl_order_record order = {
        .time_ns = now, .thread = party, .group = ++thread->orders, .lock = lock->id,
        .stack = cl_stack_capture(thread->frames, cl_session.stack_depth),
        .flags = timed ? CL_ORDER_TIMEOUT_GIVEN : 0};
    for (uint32_t at = 0; at < count; at++) {
        order.held = (uint32_t)(held[at] >> 32);
        order.held_site = (uint32_t)held[at];
        if (order.held != lock->id) {
            cl_thread_record(thread, CL_ORDER, &order, sizeof order);
        }
    }
    cl_add(&thread->self_ns, cl_now() - now);
}

/* The thread holds something and is about to acquire the lock as well, and to wait for it if need be. */
static void
cl_order_note(cl_thread *thread, const cl_lock *lock, uint32_t site, int timed)
{
    uint64_t held[CL_MOST_HELD];
    cl_held_purge(thread);
    uint32_t count = cl_held_count(thread);
    uint64_t key = cl_mix((uint64_t)lock->id << 32 | site);
    for (uint32_t at = 0; at < count; at++) {
        held[at] = cl_held_what(thread, at);
        key = cl_mix(key ^ held[at]);
    }
    if (count > 0 && cl_order_is_new(thread, key)) {
        cl_order_write(thread, thread->id, lock, timed, held, count);
    }
}

#endif
