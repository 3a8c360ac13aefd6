/* Waits of tasks that go on, and who had a permit when somebody last began to wait for one: published for
 * the report on a hang (hang_report.h), whose thread has no GIL.
 *
 * A task that waits keeps no thread, and a permit is in no thread's list. Both are written where somebody
 * begins to wait, never where nobody does. A reader that finds an entry changed meanwhile leaves it out.
 */
#ifndef CL_OPEN_WAITS_H
#define CL_OPEN_WAITS_H

#include "session.h"

#define CL_OPEN_WAITS 256u /* tasks that wait at a time; of more, the later ones are not known */
#define CL_OUTS 64u        /* locks, by id; a later one takes the place of an earlier */
#define CL_MOST_OUT 4u     /* permits told of each */

typedef struct {
    _Atomic uint32_t taken; /* 0: free, 1: being written, 2: whole */
    _Atomic uint32_t epoch, lock, party, stack;
    _Atomic uint32_t contends, holder; /* it is for a lock, and whose */
    _Atomic uint64_t start_ns;
} cl_open_wait;

typedef struct {
    _Atomic uint32_t version; /* odd: being written */
    _Atomic uint32_t epoch, lock, count;
    _Atomic uint64_t what[CL_MOST_OUT]; /* party << 32 | site */
    _Atomic uint64_t since[CL_MOST_OUT];
} cl_out;

typedef struct {
    uint32_t count; /* of all that are out */
    uint64_t what[CL_MOST_OUT], since[CL_MOST_OUT];
} cl_out_copy;

static cl_open_wait cl_open_waits[CL_OPEN_WAITS];
static _Atomic uint32_t cl_open_waits_taken, cl_open_waits_next; /* relaxed: only where to look */
static cl_out cl_outs[CL_OUTS];

/* Publishes a wait; its place plus one, 0 if all are taken. */
static uint32_t
cl_open_wait_begin(uint32_t epoch, const cl_wait_record *wait)
{
    if (atomic_load_explicit(&cl_open_waits_taken, memory_order_relaxed) >= CL_OPEN_WAITS) {
        return 0;
    }
    uint32_t next = atomic_fetch_add_explicit(&cl_open_waits_next, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < CL_OPEN_WAITS; i++) {
        uint32_t at = (next + i) % CL_OPEN_WAITS, is_free = 0;
        cl_open_wait *open = &cl_open_waits[at];
        /* acquire: what the last owner of the place wrote comes before what we write */
        if (atomic_load_explicit(&open->taken, memory_order_relaxed) == 0
            && atomic_compare_exchange_strong_explicit(&open->taken, &is_free, 1, memory_order_acquire,
                                                       memory_order_relaxed)) {
            atomic_store_explicit(&open->epoch, epoch, memory_order_relaxed);
            atomic_store_explicit(&open->lock, wait->lock, memory_order_relaxed);
            atomic_store_explicit(&open->party, wait->thread, memory_order_relaxed);
            atomic_store_explicit(&open->stack, wait->stack, memory_order_relaxed);
            atomic_store_explicit(&open->contends, 0, memory_order_relaxed);
            atomic_store_explicit(&open->start_ns, wait->start_ns, memory_order_relaxed);
            atomic_store_explicit(&open->taken, 2, memory_order_release); /* it is whole */
            atomic_fetch_add_explicit(&cl_open_waits_taken, 1, memory_order_relaxed);
            return at + 1;
        }
    }
    return 0;
}

/* Somebody has what is waited for: `holder`, 0 if that is not known. */
static void
cl_open_wait_for(uint32_t place, uint32_t holder)
{
    if (place != 0) {
        atomic_store_explicit(&cl_open_waits[place - 1].holder, holder, memory_order_relaxed);
        atomic_store_explicit(&cl_open_waits[place - 1].contends, 1, memory_order_release); /* with it */
    }
}

static void
cl_open_wait_end(uint32_t place)
{
    if (place != 0) {
        atomic_fetch_sub_explicit(&cl_open_waits_taken, 1, memory_order_relaxed);
        atomic_store_explicit(&cl_open_waits[place - 1].taken, 0, memory_order_release);
    }
}

/* Copies what is published at a place; 0 if there is nothing, or it changed meanwhile. */
static int
cl_open_wait_read(uint32_t at, uint32_t epoch, cl_wait_record *wait)
{
    cl_open_wait *open = &cl_open_waits[at];
    if (atomic_load_explicit(&open->taken, memory_order_acquire) != 2
        || atomic_load_explicit(&open->epoch, memory_order_relaxed) != epoch) {
        return 0;
    }
    memset(wait, 0, sizeof *wait);
    wait->kind = CL_COORDINATION;
    if (atomic_load_explicit(&open->contends, memory_order_acquire)) {
        wait->kind = CL_CONTENTION;
        wait->holder = atomic_load_explicit(&open->holder, memory_order_relaxed);
    }
    wait->start_ns = atomic_load_explicit(&open->start_ns, memory_order_relaxed);
    wait->lock = atomic_load_explicit(&open->lock, memory_order_relaxed);
    wait->thread = atomic_load_explicit(&open->party, memory_order_relaxed);
    wait->stack = atomic_load_explicit(&open->stack, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&open->taken, memory_order_relaxed) == 2
           && atomic_load_explicit(&open->start_ns, memory_order_relaxed) == wait->start_ns;
}

/* The entry of a lock, to be written; NULL if another thread is writing it. End with cl_out_end(). */
static cl_out *
cl_out_begin(uint32_t epoch, uint32_t lock)
{
    cl_out *out = &cl_outs[lock % CL_OUTS];
    uint32_t version = atomic_load_explicit(&out->version, memory_order_relaxed);
    if (version & 1u
        || !atomic_compare_exchange_strong_explicit(&out->version, &version, version + 1,
                                                    memory_order_acquire, memory_order_relaxed)) {
        return NULL;
    }
    atomic_thread_fence(memory_order_release); /* who sees what follows sees the odd version */
    atomic_store_explicit(&out->epoch, epoch, memory_order_relaxed);
    atomic_store_explicit(&out->lock, lock, memory_order_relaxed);
    return out;
}

static void
cl_out_end(cl_out *out, uint32_t count)
{
    atomic_store_explicit(&out->count, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&out->version, 1, memory_order_release); /* it is whole */
}

/* Copies who had permits of a lock; 0 if that is not known, or changed meanwhile. */
static int
cl_out_read(uint32_t epoch, uint32_t lock, cl_out_copy *copy)
{
    cl_out *out = &cl_outs[lock % CL_OUTS];
    uint32_t version = atomic_load_explicit(&out->version, memory_order_acquire);
    if (version & 1u || atomic_load_explicit(&out->lock, memory_order_relaxed) != lock
        || atomic_load_explicit(&out->epoch, memory_order_relaxed) != epoch) {
        return 0;
    }
    copy->count = atomic_load_explicit(&out->count, memory_order_relaxed);
    for (uint32_t i = 0; i < CL_MOST_OUT; i++) {
        copy->what[i] = atomic_load_explicit(&out->what[i], memory_order_relaxed);
        copy->since[i] = atomic_load_explicit(&out->since[i], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&out->version, memory_order_relaxed) == version && copy->count > 0;
}

#endif
