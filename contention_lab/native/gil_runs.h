/* Holds of the GIL that ended while others waited for it, one thread's in a row, as one record.
 *
 * A thread that calls the C library in between gives the GIL up and has it again thousands of times a second,
 * for less than a microsecond each, before any of those who wait is awake. Such a hold adds eight bytes to the
 * thread's state; only what does not go on a run, or gets a stack, reaches the ring. Nothing is rounded: the
 * reader makes the same holds of it again.
 */
#ifndef CL_GIL_RUNS_H
#define CL_GIL_RUNS_H

#include "held.h"

#define CL_RUN_STEP_NS UINT16_MAX /* a longer hold, or time until the next, ends the run */

/* The only hold of a run, as a record of its own. */
static cl_gil_hold_record
cl_gil_run_only(const cl_gil_run_record *run)
{
    return (cl_gil_hold_record){.start_ns = run->start_ns, .end_ns = run->end_ns, .thread = run->thread,
                                .stack = run->stack, .waiters = run->waiters, .flags = run->flags};
}

/* Records what has been put together; the stack and the flags are of the last hold. */
static void
cl_gil_run_end(cl_thread *thread, uint32_t stack, uint32_t flags)
{
    cl_gil_run_record *run = &thread->absence.run;
    if (run->count == 0) {
        return;
    }
    run->stack = stack;
    run->flags |= (uint16_t)flags;
    if (run->count == 1) {
        cl_gil_hold_record hold = cl_gil_run_only(run);
        cl_thread_record(thread, CL_GIL_HOLDS, &hold, sizeof hold);
    }
    else {
        cl_thread_record_all(thread, CL_GIL_RUNS, run, sizeof *run, run->count);
    }
    run->count = 0;
}

static void
cl_gil_run_add(cl_thread *thread, uint64_t start, uint64_t end, uint32_t waiters, uint16_t flags)
{
    cl_gil_run_record *run = &thread->absence.run;
    uint32_t count = run->count;
    if (count != 0) {
        uint64_t held = run->end_ns - thread->absence.run_last_ns, free = start - run->end_ns;
        if (count < CL_RUN_HOLDS && run->waiters == waiters && run->flags == flags
            && held <= CL_RUN_STEP_NS && start >= run->end_ns && free <= CL_RUN_STEP_NS) {
            run->step_ns[2 * count - 2] = (uint16_t)held;
            run->step_ns[2 * count - 1] = (uint16_t)free;
            run->count = (uint16_t)(count + 1);
            run->end_ns = end;
            thread->absence.run_last_ns = start;
            return;
        }
        cl_gil_run_end(thread, 0, 0);
    }
    memset(run->step_ns, 0, sizeof run->step_ns);
    run->start_ns = thread->absence.run_last_ns = start;
    run->end_ns = end;
    run->thread = thread->id;
    run->stack = 0;
    run->waiters = waiters;
    run->flags = flags;
    run->count = 1;
}

#endif
