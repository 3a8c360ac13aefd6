/* Native locks as the layer sees them, in a Python program: who waits, and with which Python stack.
 *
 * A thread that Python knows keeps its waits until its stack can be taken (absence.h); those of other threads,
 * and those for which there is no room, go without. Without a GIL it reads its stack at once (native_python.h).
 * Waits of the recorder's own threads and for its own mutexes are nobody's business.
 */
#ifndef CL_NATIVE_EVENTS_H
#define CL_NATIVE_EVENTS_H

#include <dlfcn.h>

#include "gil_events.h"
#include "native_python.h"
#include "native_symbols.h"
#include "native_yields.h"

/* A thread's releases that others waited for: no more are unwound. Of what is a signal rather than a release, as
 * most semaphores and all conditions are, still less. */
#define CL_RELEASE_EVERY_NS 500000u
#define CL_SIGNAL_EVERY_NS 10000000u

static CL_TLS struct {
    uint32_t busy; /* with a wait: locks taken for that are no events */
    uint64_t waited_until, last_release[2];
    const void *lock; /* had after that wait */
    uint32_t native_id;
} cl_native_mine;

static uint64_t
cl_native_wait_begin(void)
{
    return atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0 || cl_gil_mine.is_recorders
                   || cl_native_mine.busy
                   || atomic_load_explicit(&cl_native_ring.slot, memory_order_relaxed) == NULL
               ? 0
               : cl_now() | 1u;
}

static struct {
    uintptr_t start, end;
} cl_native_own; /* code of the recorder: its locks wait by themselves, and are recorded by it */

static int
cl_native_is_ours(const void *lock, const void *caller)
{
    return lock == &cl_intern_mutex || lock == &cl_register_mutex
           || (uintptr_t)caller - cl_native_own.start < cl_native_own.end - cl_native_own.start;
}

/* Passes a wait on, or keeps it for its Python stack. */
static void
cl_native_note(cl_native_wait *wait)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = cl_thread_here(epoch);
    if (cl_native_mine.native_id == 0) {
        cl_native_mine.native_id = cl_native_thread_id();
    }
    wait->native_id = cl_native_mine.native_id;
    wait->thread = thread == NULL || epoch == 0 ? 0 : thread->id;
#if CL_FREE_THREADED
    cl_native_push_placed(wait);
#else
    if (wait->thread == 0) {
        cl_native_push(wait);
        return;
    }
    uint32_t at = thread->absence.natives;
    if (!cl_gil.is_seen || at >= CL_ABSENT_WAITS) {
        cl_native_push(wait);
        return;
    }
    wait->flags |= thread->absence.has_gil ? CL_NATIVE_STACK_LATER : 0u;
    thread->absence.native[at] = *wait;
    atomic_signal_fence(memory_order_seq_cst);
    thread->absence.natives = at + 1;
#endif
}

/* A stack since `begun` is the recorder's own time. */
static void
cl_native_count_self(const cl_native_wait *wait, uint64_t begun)
{
    cl_thread *thread = cl_thread_here(atomic_load_explicit(&cl_epoch, memory_order_relaxed));
    if (thread != NULL && wait->depth > 1) {
        cl_add(&thread->self_ns, cl_now() - begun);
    }
}

static void
cl_native_wait_end(uint64_t begun, uint32_t kind, const void *lock, uint32_t holder, const void *caller,
                   int gave_up)
{
    uint64_t now = cl_now();
    if (cl_native_is_ours(lock, caller)) {
        return;
    }
    int error = errno;
    cl_gil_called = 1;
    cl_native_mine.busy = 1;
    cl_native_wait spin;
    if (cl_yields_end(&spin)) {
        cl_native_note(&spin);
    }
    if (kind != CL_NATIVE_COND) {
        cl_native_mine.lock = lock;
        cl_native_mine.waited_until = now;
    }
    cl_native_wait wait = {.holder = holder, .flags = gave_up ? CL_NATIVE_GAVE_UP : 0u};
    cl_native_fill(&wait, begun, now, kind, lock, caller);
    cl_native_note(&wait);
    cl_native_count_self(&wait, now);
    cl_native_mine.busy = 0;
    errno = error;
}

static void
cl_native_yielded(uint64_t begun, const void *caller)
{
    int error = errno;
    cl_native_wait wait;
    cl_native_mine.busy = 1;
    if (cl_yields_add(&wait, begun, cl_now(), caller)) {
        cl_native_note(&wait);
    }
    cl_native_mine.busy = 0;
    errno = error;
}

/* The calling thread has released a lock that others wait for, or has signalled a condition. */
static void
cl_native_released(uint64_t now, uint32_t kind, const void *lock, const void *caller)
{
    if (cl_native_is_ours(lock, caller)) {
        return;
    }
    /* Who has got it after a wait always comes here when it lets go: the lock is marked as waited for. */
    int waited = cl_native_mine.lock == lock;
    cl_native_mine.lock = waited ? NULL : cl_native_mine.lock;
    int is_signal = kind == CL_NATIVE_SEM || kind == CL_NATIVE_COND;
    uint64_t *last = &cl_native_mine.last_release[is_signal];
    if (now - *last < (is_signal ? CL_SIGNAL_EVERY_NS : CL_RELEASE_EVERY_NS) && now > *last) {
        return;
    }
    int error = errno;
    *last = now;
    uint64_t since = waited && cl_native_mine.waited_until < now ? cl_native_mine.waited_until : now;
    cl_native_wait wait = {.flags = CL_NATIVE_RELEASE, .start_ns = since, .end_ns = now,
                           .lock = (uintptr_t)lock, .kind = kind};
    cl_native_mine.busy = 1;
    uint64_t before = cl_now(); /* the release itself took its time */
    wait.depth = cl_native_unwind(wait.at, caller);
    cl_native_note(&wait);
    cl_native_count_self(&wait, before);
    cl_native_mine.busy = 0;
    errno = error;
}

/* Where a function that somebody exports lies; nowhere if nobody does. */
static void
cl_symbol_of(cl_symbol *found, const char *name)
{
    memset(found, 0, sizeof *found);
    void *at = dlsym(RTLD_DEFAULT, name);
    if (at != NULL) {
        cl_symbol_find(found, (uintptr_t)at + 1);
    }
}

/* A recording begins: where the interpreter's loop and the unwinder are. */
static void
cl_native_begin(void)
{
    cl_native_python_begin();
    cl_native_begin_recording();
#if CL_HAVE_UNWINDER
    *(void **)(void *)&cl_demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    cl_symbol found;
    cl_symbol_of(&found, "_PyEval_EvalFrameDefault");
    cl_native_code.loop_start = found.start;
    cl_native_code.loop_end = found.end;
    cl_symbol_find(&found, (uintptr_t)_Unwind_Backtrace + 1);
    cl_native_code.unwinder_start = found.code_start;
    cl_native_code.unwinder_end = found.code_end;
    cl_symbol_find(&found, (uintptr_t)cl_native_released + 1);
    cl_native_own.start = found.code_start;
    cl_native_own.end = found.code_end;
#endif
}

#endif
