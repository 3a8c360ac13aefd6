/* What the sampler may know of a thread without touching memory that could go away: a fixed table, in
 * which each recorded thread has a slot from its first event to its end. With more threads than slots,
 * the rest is not sampled.
 */
#ifndef CL_THREAD_SLOTS_H
#define CL_THREAD_SLOTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define CL_SLOTS 512
#define CL_NO_SLOT UINT32_MAX
#define CL_SLOT_TAKEN UINT32_MAX /* native id of a slot that is being filled */

enum { CL_DOES_ANYTHING, CL_AWAITS_LOCK, CL_AWAITS_OTHERS }; /* recorded waits; else it is sampled */

static struct {
    _Atomic uint32_t native_id; /* 0: free */
    _Atomic uint32_t thread;
    _Atomic uint32_t doing;
    _Atomic uint64_t over_ns; /* when somebody saw that its Python code had ended; 0: not yet */
} cl_slots[CL_SLOTS];
static _Atomic uint32_t cl_slots_used; /* slots from here on were never taken */

/* Nobody is recorded yet. */
static void
cl_slots_clear(void)
{
    memset(cl_slots, 0, sizeof cl_slots);
    cl_slots_used = 0;
}

/* Takes a slot for the calling thread; CL_NO_SLOT if all are taken. */
static uint32_t
cl_slot_take(uint32_t thread, uint32_t native_id)
{
    for (uint32_t i = 0; i < CL_SLOTS; i++) {
        uint32_t expected = 0;
        if (!atomic_compare_exchange_strong_explicit(&cl_slots[i].native_id, &expected, CL_SLOT_TAKEN,
                                                     memory_order_acquire, memory_order_relaxed)) {
            continue;
        }
        atomic_store_explicit(&cl_slots[i].thread, thread, memory_order_relaxed);
        atomic_store_explicit(&cl_slots[i].doing, CL_DOES_ANYTHING, memory_order_relaxed);
        atomic_store_explicit(&cl_slots[i].over_ns, 0, memory_order_relaxed);
        uint32_t used = atomic_load_explicit(&cl_slots_used, memory_order_relaxed);
        while (used < i + 1
               && !atomic_compare_exchange_weak_explicit(&cl_slots_used, &used, i + 1,
                                                         memory_order_relaxed, memory_order_relaxed)) {
        }
        /* release: whoever sees the native id sees whose it is */
        atomic_store_explicit(&cl_slots[i].native_id, native_id, memory_order_release);
        return i;
    }
    return CL_NO_SLOT;
}

/* Gives a slot back, unless a newer recording has given it to another thread. */
static void
cl_slot_leave(uint32_t slot, uint32_t thread, uint32_t native_id)
{
    if (slot != CL_NO_SLOT
        && atomic_load_explicit(&cl_slots[slot].thread, memory_order_relaxed) == thread) {
        atomic_compare_exchange_strong_explicit(&cl_slots[slot].native_id, &native_id, 0,
                                                memory_order_release, memory_order_relaxed);
    }
}

/* Notes that the Python code of a thread has ended. The system may end the thread only later, and after the
 * recording. One that it has ended already has no slot. */
static void
cl_slot_over(uint32_t native_id, uint64_t now)
{
    uint32_t used = atomic_load_explicit(&cl_slots_used, memory_order_relaxed);
    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&cl_slots[i].native_id, memory_order_acquire) == native_id) {
            atomic_store_explicit(&cl_slots[i].over_ns, now, memory_order_relaxed);
            return;
        }
    }
}

/* When that was; 0 if nobody saw it so far. */
static uint64_t
cl_slot_over_ns(uint32_t slot, uint32_t thread)
{
    if (slot == CL_NO_SLOT || atomic_load_explicit(&cl_slots[slot].thread, memory_order_relaxed) != thread) {
        return 0;
    }
    return atomic_load_explicit(&cl_slots[slot].over_ns, memory_order_relaxed);
}

/* Notes what the slot's thread is about to do. Contended paths only. */
static inline void
cl_slot_does(uint32_t slot, uint32_t doing)
{
    if (slot != CL_NO_SLOT) {
        atomic_store_explicit(&cl_slots[slot].doing, doing, memory_order_relaxed);
    }
}

#endif
