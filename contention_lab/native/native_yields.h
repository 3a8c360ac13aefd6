/* Threads that call sched_yield() again and again: what spins has no lock that could be seen, only a place.
 *
 * Calls from one place with little between them are a series, and a series a wait. A long one is written in parts,
 * each with a stack; what is left of it, once the thread does something else.
 */
#ifndef CL_NATIVE_YIELDS_H
#define CL_NATIVE_YIELDS_H

#include "native_waits.h"

#define CL_YIELD_GAP_NS 50000u    /* more between two calls, and the thread did something else */
#define CL_YIELD_LEAST_NS 20000u  /* what is shorter is no wait */
#define CL_YIELD_PART_NS 1000000u /* and a part of a long one is that long: 1 % of it goes into a stack */

static __thread struct {
    uint64_t start, end; /* of what is not written; start is 0 for nothing */
    const void *caller;
} cl_yields __attribute__((tls_model("initial-exec")));

/* The series is over: 1 if there is a wait to be written. */
static int
cl_yields_end(cl_native_wait *wait)
{
    uint64_t start = cl_yields.start;
    cl_yields.start = 0;
    if (start == 0 || cl_yields.end - start < CL_YIELD_LEAST_NS) {
        return 0;
    }
    *wait = (cl_native_wait){.start_ns = start, .end_ns = cl_yields.end, .kind = CL_NATIVE_YIELD,
                             .lock = (uintptr_t)cl_yields.caller, .depth = 1};
    wait->at[0] = (uintptr_t)cl_yields.caller;
    return 1;
}

/* One more call, of now: 1 if there is a wait to be written. */
static int
cl_yields_add(cl_native_wait *wait, uint64_t begun, uint64_t now, const void *caller)
{
    int is_new = cl_yields.start == 0 || cl_yields.caller != caller
                 || begun > cl_yields.end + CL_YIELD_GAP_NS;
    int is_over = is_new && cl_yields_end(wait);
    if (is_new) {
        cl_yields.start = begun;
        cl_yields.caller = caller;
    }
    cl_yields.end = now < begun ? begun : now;
    if (is_over || cl_yields.end - cl_yields.start < CL_YIELD_PART_NS) {
        return is_over;
    }
    *wait = (cl_native_wait){0};
    cl_native_fill(wait, cl_yields.start, cl_yields.end, CL_NATIVE_YIELD, caller, caller);
    cl_yields.start = cl_yields.end;
    return 1;
}

#endif
