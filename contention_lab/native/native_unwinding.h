/* Native stacks by unwinding, and without, where a thread stands again where it stood before.
 *
 * An unwinding takes 5 to 20 us: it reads the tables of each library. So what one has found is kept, with the
 * places on the stack that the return addresses were read from. If this function runs at the same address of a
 * stack, for the same caller, and every one of those places still holds the same return address, the stack is
 * the same one. They are looked at from the inside out, so that each is on the stack if the one before was.
 *
 * Nothing is allocated and no lock is waited for. An entry that another thread uses is done without.
 */
#ifndef CL_NATIVE_UNWINDING_H
#define CL_NATIVE_UNWINDING_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#if defined(__linux__) && defined(__GLIBC__)
#  include <unwind.h>
#  define CL_HAVE_UNWINDER 1
#else
#  define CL_HAVE_UNWINDER 0
#endif

#define CL_NATIVE_DEPTH 16

/* Code at which unwinding ends (the interpreter's loop: what is beyond it, Python's stack says, and a library
 * that switches stacks may have left it in pieces), and code for whose locks nothing is unwound (the unwinder's
 * own). Addresses from start to below end. */
static struct {
    uintptr_t loop_start, loop_end, unwinder_start, unwinder_end;
} cl_native_code;

#if CL_HAVE_UNWINDER

#  if defined(__x86_64__)
#    define CL_RETURN_PLACE(cfa) ((cfa) - sizeof(uintptr_t)) /* where a call has put its return address */
#  else
#    define CL_RETURN_PLACE(cfa) ((uintptr_t)0) /* not known: nothing is kept */
#  endif

#  define CL_NATIVE_KNOWN 256u /* stacks, of all threads */

/* From the caller of the layer outwards. */
typedef struct {
    uintptr_t frame;            /* of cl_native_unwind(); 0: none */
    uint32_t depth, places;     /* one more than `depth`, if the interpreter's loop ended it */
    uintptr_t at[CL_NATIVE_DEPTH + 1], place[CL_NATIVE_DEPTH + 1];
} cl_unwound;

static struct {
    _Atomic uint32_t busy;
    cl_unwound stack;
} cl_native_known[CL_NATIVE_KNOWN];

typedef struct {
    cl_unwound *stack;
    uintptr_t caller;
    int skipped, is_ours, is_certain;
} cl_native_walk;

static void
cl_native_found(cl_native_walk *walk, uintptr_t at, uintptr_t place)
{
    cl_unwound *stack = walk->stack;
    if (place == 0 || *(const uintptr_t *)place != at) { /* a signal's frame, say */
        walk->is_certain = 0;
    }
    stack->at[stack->places] = at;
    stack->place[stack->places++] = place;
}

static _Unwind_Reason_Code
cl_native_step(struct _Unwind_Context *context, void *argument)
{
    cl_native_walk *walk = argument;
    cl_unwound *stack = walk->stack;
    uintptr_t at = _Unwind_GetIP(context);
    if (walk->is_ours && at != walk->caller) { /* frames of the layer and of the recorder */
        return walk->skipped++ < 8 ? _URC_NO_REASON : _URC_END_OF_STACK;
    }
    if (at == 0 || stack->depth == CL_NATIVE_DEPTH) {
        return _URC_END_OF_STACK;
    }
    cl_native_found(walk, at, CL_RETURN_PLACE(_Unwind_GetCFA(context)));
    if (!walk->is_ours && at - cl_native_code.loop_start < cl_native_code.loop_end - cl_native_code.loop_start) {
        return _URC_END_OF_STACK;
    }
    walk->is_ours = 0;
    stack->depth++;
    return _URC_NO_REASON;
}

/* Whether the stack is still the one of a thread that is at `frame` now. */
static int
cl_native_is_same(const cl_unwound *stack, uintptr_t frame, uintptr_t caller)
{
    if (stack->frame != frame || stack->at[0] != caller) {
        return 0;
    }
    for (uint32_t i = 0; i < stack->places; i++) {
        if (*(const volatile uintptr_t *)stack->place[i] != stack->at[i]) {
            return 0;
        }
    }
    return 1;
}

/* Return addresses, innermost first, from the caller of the layer outwards; how many. */
static __attribute__((noinline)) uint32_t
cl_native_unwind(uintptr_t addresses[CL_NATIVE_DEPTH], const void *from)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0), caller = (uintptr_t)from;
    addresses[0] = caller;
    if (caller - cl_native_code.unwinder_start < cl_native_code.unwinder_end - cl_native_code.unwinder_start) {
        return 1;
    }
    uint32_t number = (uint32_t)(((frame ^ caller * 31u) * 0x9E3779B97F4A7C15u) >> 40) % CL_NATIVE_KNOWN;
    /* acquire, and release below: whoever has the entry sees it whole */
    int have = atomic_exchange_explicit(&cl_native_known[number].busy, 1, memory_order_acquire) == 0;
    cl_unwound *known = &cl_native_known[number].stack, own;
    uint32_t depth;
    if (have && cl_native_is_same(known, frame, caller)) {
        depth = known->depth;
        memcpy(addresses, known->at, depth * sizeof *addresses);
    }
    else {
        cl_native_walk walk = {.stack = have ? known : &own, .caller = caller, .is_ours = 1, .is_certain = 1};
        walk.stack->depth = walk.stack->places = 0;
        walk.stack->frame = 0;
        _Unwind_Backtrace(cl_native_step, &walk);
        depth = walk.stack->depth;
        memcpy(addresses, walk.stack->at, depth * sizeof *addresses);
        walk.stack->frame = walk.is_certain && depth > 0 ? frame : 0;
        depth += depth == 0; /* the caller itself */
    }
    if (have) {
        atomic_store_explicit(&cl_native_known[number].busy, 0, memory_order_release);
    }
    return depth;
}

#else

static uint32_t
cl_native_unwind(uintptr_t addresses[CL_NATIVE_DEPTH], const void *from)
{
    addresses[0] = (uintptr_t)from;
    return 1;
}

#endif

#endif
