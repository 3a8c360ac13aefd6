/* Waits for locks of the C library (mutexes, conditions, semaphores, ...) by any thread, Python's or not, on
 * their way to the writer.
 *
 * They are noted in the midst of whatever the thread is doing, perhaps with its allocator's own mutex in hand:
 * so nothing is allocated here, no lock is taken, and Python is not asked. One ring serves all threads; a slot
 * is taken with a compare-and-swap and passed on with a release store. Return addresses are only collected:
 * what they are called is the writer's business (native_tables.h).
 */
#ifndef CL_NATIVE_WAITS_H
#define CL_NATIVE_WAITS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "layer/table.h"
#include "native_unwinding.h"

#define CL_NATIVE_SLOTS 4096u
#define CL_NATIVE_UNSEEN_NS 200000u /* of a thread's waits: then the next one is unwound */

/* Before the writer has named anything. */
typedef struct {
    uint64_t start_ns, end_ns;
    uintptr_t lock;
    uint32_t kind, native_id, holder, thread, stack, flags, depth;
    uintptr_t acquired_at; /* of a release: the call that took the lock, after a wait; else 0 */
    uintptr_t at[CL_NATIVE_DEPTH]; /* return addresses, innermost first; the caller's at least */
} cl_native_wait;

typedef struct {
    _Atomic uint32_t full;
    cl_native_wait wait;
} cl_native_slot;

static struct {
    _Atomic(cl_native_slot *) slot; /* NULL: nothing is recorded */
    _Atomic uint64_t head, tail;
    _Atomic uint64_t dropped;
} cl_native_ring;

/* A thread's waits since the last that has been unwound. */
static __thread uint64_t cl_native_unseen __attribute__((tls_model("initial-exec")));

/* A slot to be filled and passed on; NULL if there is none, or nothing is recorded. */
static cl_native_slot *
cl_native_reserve(void)
{
    cl_native_slot *slots = atomic_load_explicit(&cl_native_ring.slot, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&cl_native_ring.tail, memory_order_relaxed);
    if (slots == NULL) {
        return NULL;
    }
    do {
        /* acquire: the writer is done with the slot */
        if (tail - atomic_load_explicit(&cl_native_ring.head, memory_order_acquire) >= CL_NATIVE_SLOTS) {
            atomic_fetch_add_explicit(&cl_native_ring.dropped, 1, memory_order_relaxed);
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(&cl_native_ring.tail, &tail, tail + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return &slots[tail % CL_NATIVE_SLOTS];
}

static void
cl_native_pass_on(cl_native_slot *slot)
{
    atomic_store_explicit(&slot->full, 1, memory_order_release); /* whole before it is seen */
}

static void
cl_native_push(const cl_native_wait *wait)
{
    cl_native_slot *slot = cl_native_reserve();
    if (slot != NULL) {
        slot->wait = *wait;
        cl_native_pass_on(slot);
    }
}

/* The writer's: the oldest wait, NULL for none. Valid until cl_native_pop(). */
static const cl_native_wait *
cl_native_peek(void)
{
    cl_native_slot *slots = atomic_load_explicit(&cl_native_ring.slot, memory_order_acquire);
    if (slots == NULL) {
        return NULL;
    }
    uint64_t head = atomic_load_explicit(&cl_native_ring.head, memory_order_relaxed);
    cl_native_slot *slot = &slots[head % CL_NATIVE_SLOTS];
    return atomic_load_explicit(&slot->full, memory_order_acquire) ? &slot->wait : NULL;
}

static void
cl_native_pop(void)
{
    uint64_t head = atomic_load_explicit(&cl_native_ring.head, memory_order_relaxed);
    cl_native_slot *slots = atomic_load_explicit(&cl_native_ring.slot, memory_order_relaxed);
    atomic_store_explicit(&slots[head % CL_NATIVE_SLOTS].full, 0, memory_order_relaxed);
    atomic_store_explicit(&cl_native_ring.head, head + 1, memory_order_release);
}

/* Fills a wait in, with a native stack if it is time for one. */
static void
cl_native_fill(cl_native_wait *wait, uint64_t start, uint64_t end, uint32_t kind, const void *lock,
               const void *caller)
{
    wait->start_ns = start;
    wait->end_ns = end < start ? start : end;
    wait->lock = (uintptr_t)lock;
    wait->kind = kind;
    cl_native_unseen += wait->end_ns - wait->start_ns;
    /* A wait in the kernel says what it is only by its callers. */
    if (cl_native_unseen >= CL_NATIVE_UNSEEN_NS || kind == CL_NATIVE_FUTEX) {
        cl_native_unseen = 0;
        wait->depth = cl_native_unwind(wait->at, caller);
    }
    else {
        wait->at[0] = (uintptr_t)caller;
        wait->depth = 1;
    }
}

/* Makes the ring ready; not having it is no reason to fail. */
static void
cl_native_begin_recording(void)
{
    static cl_native_slot *room; /* kept: a thread may be late */
    if (room == NULL) {
        room = calloc(CL_NATIVE_SLOTS, sizeof *room);
    }
    for (uint32_t i = 0; i < CL_NATIVE_SLOTS && room != NULL; i++) {
        atomic_store_explicit(&room[i].full, 0, memory_order_relaxed);
    }
    cl_native_ring.head = cl_native_ring.tail = cl_native_ring.dropped = 0;
    atomic_store_explicit(&cl_native_ring.slot, room, memory_order_release);
}

static void
cl_native_end_recording(void)
{
    atomic_store_explicit(&cl_native_ring.slot, NULL, memory_order_relaxed);
}

#endif
