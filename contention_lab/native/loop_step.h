/* One callback of an event loop, timed by probes at the start and the end of Handle._run. Where it took long, a
 * function is told.
 *
 * Costs two looks at the clock and one at the loop's queue.
 */
#ifndef CL_LOOP_STEP_H
#define CL_LOOP_STEP_H

#include "contain.h"
#include "emit.h"

#define CL_SLOW_STEP_NS 2000000u /* from here on, the time to describe a step does not matter to it */

/* The step that this thread's event loop is in. One loop within another's callback: the outer step is lost. */
typedef struct {
    const PyObject *handle; /* compared, never followed; NULL: none */
    uint32_t epoch;
    uint64_t start_ns;
    Py_ssize_t others; /* callbacks of the same loop that wait for this one to end */
} cl_step;

static CL_TLS cl_step cl_step_here;
static PyObject *cl_step_loop, *cl_step_ready; /* "_loop" and "_ready", interned and kept */

/* The handle's loop, a new reference, or NULL with or without an exception. */
static PyObject *
cl_step_loop_of(PyObject *handle)
{
#if !CL_FREE_THREADED
    /* Where the last handle's type keeps it: nearly always this one's, too. Guarded by the GIL. */
    static PyTypeObject *last_type; /* owned */
    static Py_ssize_t offset;
    PyTypeObject *type = Py_TYPE(handle);
    if (type != last_type) {
        PyObject *slot = PyObject_GetAttr((PyObject *)type, cl_step_loop);
        int known = slot != NULL && Py_IS_TYPE(slot, &PyMemberDescr_Type)
                    && ((PyMemberDescrObject *)slot)->d_member->type == T_OBJECT_EX;
        Py_XSETREF(last_type, (PyTypeObject *)Py_NewRef((PyObject *)type));
        offset = known ? ((PyMemberDescrObject *)slot)->d_member->offset : 0;
        PyErr_Clear();
        Py_XDECREF(slot);
    }
    if (offset != 0) {
        return Py_XNewRef(*(PyObject **)(void *)((char *)handle + offset));
    }
#endif
    return PyObject_GetAttr(handle, cl_step_loop);
}

/* The length of a queue; 0 if it is none. */
static Py_ssize_t
cl_step_length(PyObject *ready)
{
    Py_ssize_t length = PyObject_Size(ready);
    if (length < 0) {
        PyErr_Clear();
        length = 0;
    }
    return length;
}

/* How many callbacks of the same loop wait for this one to end; those it makes ready itself do not. */
static Py_ssize_t
cl_step_others(PyObject *handle)
{
    PyObject *loop = cl_step_loop_of(handle);
#if !CL_FREE_THREADED
    /* The queue of the loop that was asked last, as long as that lives. Guarded by the GIL. */
    static PyObject *last_loop; /* owned: a weak reference */
    static PyObject *last_ready; /* owned */
    if (loop != NULL && last_loop != NULL && ((PyWeakReference *)last_loop)->wr_object == loop) {
        Py_DECREF(loop);
        return cl_step_length(last_ready);
    }
#endif
    PyObject *ready = loop == NULL ? NULL : PyObject_GetAttr(loop, cl_step_ready);
    Py_ssize_t others = ready == NULL ? 0 : cl_step_length(ready);
#if !CL_FREE_THREADED
    PyObject *weak = ready == NULL ? NULL : PyWeakref_NewRef(loop, NULL);
    if (weak != NULL) {
        Py_XSETREF(last_ready, Py_NewRef(ready));
        Py_XSETREF(last_loop, weak);
    }
#endif
    PyErr_Clear(); /* somebody's own kind of loop */
    Py_XDECREF(ready);
    Py_XDECREF(loop);
    return others;
}

/* step_begins(handle): its callback is about to be called. */
static PyObject *
cl_step_begins(PyObject *module, PyObject *handle)
{
    (void)module;
    cl_step *step = &cl_step_here;
    step->epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    step->handle = handle;
    step->others = cl_step_others(handle);
    step->start_ns = cl_now();
    /* Of loops in several threads the last one counts: it is a hint for the sampler, no more. */
    atomic_store_explicit(&cl_step_thread, cl_current == NULL ? 0 : cl_current->id, memory_order_relaxed);
    atomic_store_explicit(&cl_step_since, step->start_ns | 1u, memory_order_relaxed);
    Py_RETURN_NONE;
}

/* step_ended(slow, handle): its callback has been called. Calls slow(handle, start_ns, end_ns, others) if that
 * took long; a mistake in it is no business of the loop's. */
static PyObject *
cl_step_ended(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_step step = cl_step_here;
    if (nargs != 2 || step.handle != args[1]) {
        Py_RETURN_NONE;
    }
    uint64_t end_ns = cl_now();
    cl_step_here.handle = NULL;
    atomic_store_explicit(&cl_step_since, 0, memory_order_relaxed);
    atomic_store_explicit(&cl_step_ended_ns, end_ns, memory_order_relaxed);
    if (__builtin_expect(end_ns > step.start_ns && end_ns - step.start_ns >= CL_SLOW_STEP_NS, 0)
        && atomic_load_explicit(&cl_epoch, memory_order_relaxed) == step.epoch) {
        PyObject *done = PyObject_CallFunction(args[0], "OKKn", args[1], (unsigned long long)step.start_ns,
                                               (unsigned long long)end_ns, step.others);
        if (done == NULL && cl_contain(args[0]) < 0) {
            return NULL;
        }
        Py_XDECREF(done);
    }
    Py_RETURN_NONE;
}

/* emit_step(start_ns, end_ns, task, stack, ready, victim, victim_stack): a callback that took long. */
static PyObject *
cl_emit_step(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long start, end;
    unsigned int task, stack, ready, victim, victim_stack;
    if (!PyArg_ParseTuple(args, "KKIIIII:emit_step", &start, &end, &task, &stack, &ready, &victim,
                          &victim_stack)) {
        return NULL;
    }
    cl_thread *thread = cl_recording_thread();
    if (thread != NULL && cl_session.level >= CL_LEVEL_PROFILE) {
        cl_loop_step step = {.start_ns = start, .end_ns = end < start ? start : end,
                             .thread = thread->id, .task = task, .stack = stack, .ready = ready,
                             .victim = victim, .victim_stack = victim_stack};
        cl_thread_record(thread, CL_LOOP_STEPS, &step, sizeof step);
    }
    Py_RETURN_NONE;
}

static int
cl_loop_step_ready(void)
{
    cl_step_loop = PyUnicode_InternFromString("_loop");
    cl_step_ready = PyUnicode_InternFromString("_ready");
    return cl_step_loop == NULL || cl_step_ready == NULL ? -1 : 0;
}

#define CL_LOOP_STEP_METHODS \
    {"step_begins", cl_step_begins, METH_O, \
     "step_begins(handle)\n--\n\nA callback of an event loop is about to be called."}, \
    {"step_ended", (PyCFunction)(void (*)(void))cl_step_ended, METH_FASTCALL, \
     "step_ended(slow, handle)\n--\n\n" \
     "It has been; after a slow call, slow(handle, start_ns, end_ns, others)."}, \
    {"emit_step", cl_emit_step, METH_VARARGS, \
     "emit_step(start_ns, end_ns, task, stack, ready, victim, victim_stack)\n--\n\n" \
     "Record a callback of an event loop that took long."}

#endif
