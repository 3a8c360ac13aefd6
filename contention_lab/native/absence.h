/* What happens while a thread does not have the GIL, and the stack that goes with it.
 *
 * From the moment a thread gives the GIL up until it has it again it does not run Python: its stack at the end
 * is what it was all the time. So one capture, made with the GIL, serves for the hold that ended there, the
 * wait that ends here, and the calls it was blocked in meanwhile; and until then they wait in the thread's
 * state. Calls made with the GIL in hand get the stack of the next release of a lock instead.
 *
 * A signal handler may make a call that is noted here, in the midst of anything: it changes nothing but
 * `call` and `calls`, and at worst a note is lost.
 */
#ifndef CL_ABSENCE_H
#define CL_ABSENCE_H

#include "gil_runs.h"

static CL_TLS uint8_t cl_gil_called; /* this thread has called what may block, since it gave up the GIL */

#define CL_BLOCKED_NS 20000u    /* shorter calls are left out */
#define CL_UNSEEN_NS 50000u     /* of waiting for the GIL and of holds: then the next one gets a stack */

/* The innermost recorded lock that the thread holds, 0 for none; signals are no locks. */
static uint32_t
cl_held_innermost(const cl_thread *thread)
{
    for (uint32_t at = cl_held_count(thread); at-- > 0;) {
        uint32_t id = (uint32_t)(cl_held_what(thread, at) >> 32);
        if (atomic_load_explicit(&cl_handed[id % CL_HANDED], memory_order_relaxed) != id) {
            return id;
        }
    }
    return 0;
}

/* The beginning of a call: 0 unless this thread holds a recorded lock. */
static uint64_t
cl_blocking_begin(uint32_t call)
{
    cl_gil_called = 1;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_here(epoch);
    if (thread == NULL || cl_held_count(thread) == 0 || cl_session.level < CL_LEVEL_PROFILE
        || cl_held_innermost(thread) == 0) {
        return 0;
    }
    uint64_t now = cl_now() | 1u;
    atomic_store_explicit(&thread->blocked_in, call, memory_order_relaxed);
    atomic_store_explicit(&thread->blocked_since, now, memory_order_release);
    return now;
}

static void
cl_blocking_end(uint64_t begun, uint32_t call)
{
    uint64_t now = cl_now();
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_here(epoch);
    if (thread == NULL) {
        return;
    }
    atomic_store_explicit(&thread->blocked_since, 0, memory_order_relaxed);
    if (now < begun + CL_BLOCKED_NS) {
        return;
    }
    uint32_t at = thread->absence.calls;
    if (at >= CL_ABSENT_EVENTS) {
        cl_add(&thread->dropped_holds, 1);
        return;
    }
    thread->absence.call[at] = (cl_blocking_record){
        .start_ns = begun, .end_ns = now, .thread = thread->id, .lock = cl_held_innermost(thread),
        .call = (uint16_t)call, .flags = thread->absence.has_gil ? CL_BLOCKING_STACK_LATER : 0};
    atomic_signal_fence(memory_order_seq_cst); /* whole before it counts */
    thread->absence.calls = at + 1;
}

/* Records what has been noted of calls, with that stack. */
static void
cl_absence_end(cl_thread *thread, uint32_t stack, uint16_t flags)
{
    struct cl_absence *absence = &thread->absence;
    uint32_t calls = absence->calls;
    for (uint32_t i = 0; i < calls; i++) {
        cl_blocking_record record = absence->call[i];
        record.stack = stack;
        record.flags |= flags;
        cl_thread_record(thread, CL_BLOCKING, &record, sizeof record);
    }
    absence->calls = 0;
    for (uint32_t i = 0; i < absence->natives; i++) {
        absence->native[i].stack = stack;
        absence->native[i].flags |= flags != 0 ? CL_NATIVE_STACK_LATER : 0;
        cl_native_push(&absence->native[i]);
    }
    absence->natives = 0;
}

/* At the release of a lock, with a thread state: there are calls that no end of an absence has recorded. */
static __attribute__((noinline)) void
cl_absence_overdue(cl_thread *thread)
{
    cl_absence_end(thread, cl_stack_capture(thread->frames, cl_session.stack_depth),
                   CL_BLOCKING_STACK_LATER);
}

#endif
