/* A method that is timed: an event loop's way to run one callback. Where that took long, a function is told.
 *
 * Put in the place of Handle._run, it behaves like the method: it binds, and has its attributes. Costs two
 * looks at the clock and one at the loop's queue a call.
 */
#ifndef CL_LOOP_STEP_H
#define CL_LOOP_STEP_H

#include "emit.h"

#define CL_SLOW_STEP_NS 2000000u /* from here on, the time to describe a step does not matter to it */

typedef struct {
    PyObject_HEAD
    PyObject *method, *slow;
    vectorcallfunc vectorcall;
} cl_timed_method;

static PyObject *cl_timed_loop, *cl_timed_ready; /* "_loop" and "_ready", interned and kept */

/* The handle's loop, a new reference, or NULL with or without an exception. */
static PyObject *
cl_timed_loop_of(PyObject *owner)
{
#if !CL_FREE_THREADED
    /* Where the last handle's type keeps it: nearly always this one's, too. Guarded by the GIL. */
    static PyTypeObject *last_type; /* owned */
    static Py_ssize_t offset;
    PyTypeObject *type = Py_TYPE(owner);
    if (type != last_type) {
        PyObject *slot = PyObject_GetAttr((PyObject *)type, cl_timed_loop);
        int known = slot != NULL && Py_IS_TYPE(slot, &PyMemberDescr_Type)
                    && ((PyMemberDescrObject *)slot)->d_member->type == T_OBJECT_EX;
        Py_XSETREF(last_type, (PyTypeObject *)Py_NewRef((PyObject *)type));
        offset = known ? ((PyMemberDescrObject *)slot)->d_member->offset : 0;
        PyErr_Clear();
        Py_XDECREF(slot);
    }
    if (offset != 0) {
        return Py_XNewRef(*(PyObject **)(void *)((char *)owner + offset));
    }
#endif
    return PyObject_GetAttr(owner, cl_timed_loop);
}

/* How many callbacks of the same loop wait for this one to end; those it makes ready itself do not. */
static Py_ssize_t
cl_timed_others(PyObject *owner)
{
    PyObject *loop = cl_timed_loop_of(owner);
    PyObject *ready = loop == NULL ? NULL : PyObject_GetAttr(loop, cl_timed_ready);
    Py_ssize_t others = ready == NULL ? -1 : PyObject_Size(ready);
    if (others < 0) { /* somebody's own kind of loop */
        PyErr_Clear();
        others = 0;
    }
    Py_XDECREF(ready);
    Py_XDECREF(loop);
    return others;
}

/* Calls slow(self, start_ns, end_ns, others); what goes wrong in it is no business of the loop's. */
static void
cl_timed_tell(cl_timed_method *self, PyObject *owner, uint64_t start, uint64_t end, Py_ssize_t others)
{
    PyObject *done = PyObject_CallFunction(self->slow, "OKKn", owner, (unsigned long long)start,
                                           (unsigned long long)end, others);
    if (done == NULL) {
        PyErr_WriteUnraisable(self->slow);
    }
    Py_XDECREF(done);
}

static PyObject *
cl_timed_call(PyObject *object, PyObject *const *args, size_t nargs, PyObject *names)
{
    cl_timed_method *self = (cl_timed_method *)object;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0 || PyVectorcall_NARGS(nargs) == 0) {
        return PyObject_Vectorcall(self->method, args, nargs, names);
    }
    Py_ssize_t others = cl_timed_others(args[0]);
    uint64_t start = cl_now();
    /* Of loops in several threads the last one counts: it is a hint for the sampler, no more. */
    atomic_store_explicit(&cl_step_since, start | 1u, memory_order_relaxed);
    PyObject *result = PyObject_Vectorcall(self->method, args, nargs, names);
    uint64_t end = cl_now();
    atomic_store_explicit(&cl_step_since, 0, memory_order_relaxed);
    if (__builtin_expect(end - start >= CL_SLOW_STEP_NS, 0) && result != NULL && end > start
        && atomic_load_explicit(&cl_epoch, memory_order_relaxed) == epoch) {
        cl_timed_tell(self, args[0], start, end, others);
    }
    return result;
}

static PyObject *
cl_timed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"method", "slow", NULL};
    PyObject *method, *slow;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:TimedMethod", keywords, &method, &slow)) {
        return NULL;
    }
    cl_timed_method *self = (cl_timed_method *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->method = Py_NewRef(method);
        self->slow = Py_NewRef(slow);
        self->vectorcall = cl_timed_call;
    }
    return (PyObject *)self;
}

static int
cl_timed_traverse(PyObject *object, visitproc visit, void *arg)
{
    cl_timed_method *self = (cl_timed_method *)object;
    Py_VISIT(self->method);
    Py_VISIT(self->slow);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int
cl_timed_clear(PyObject *object)
{
    cl_timed_method *self = (cl_timed_method *)object;
    Py_CLEAR(self->method);
    Py_CLEAR(self->slow);
    return 0;
}

static void
cl_timed_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    cl_timed_clear(object);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

static PyObject *
cl_timed_bind(PyObject *object, PyObject *owner, PyObject *type)
{
    (void)type;
    return owner == NULL || owner == Py_None ? Py_NewRef(object) : PyMethod_New(object, owner);
}

/* Whatever we do not have ourselves, __name__ and __code__ among it, is the method's. */
static PyObject *
cl_timed_getattro(PyObject *object, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) {
        return PyObject_GenericGetAttr(object, name);
    }
    return PyObject_GetAttr(((cl_timed_method *)object)->method, name);
}

static PyMemberDef cl_timed_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(cl_timed_method, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot cl_timed_slots[] = {
    {Py_tp_doc, "TimedMethod(method, slow)\n--\n\n"
                "Calls the method; after a slow call, slow(self, start_ns, end_ns, others)."},
    {Py_tp_new, cl_timed_new},
    {Py_tp_dealloc, cl_timed_dealloc},
    {Py_tp_traverse, cl_timed_traverse},
    {Py_tp_clear, cl_timed_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, cl_timed_bind},
    {Py_tp_getattro, cl_timed_getattro},
    {Py_tp_members, cl_timed_members},
    {0, NULL},
};

static PyType_Spec cl_timed_spec = {
    .name = "contention_lab.native._core.TimedMethod",
    .basicsize = sizeof(cl_timed_method),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = cl_timed_slots,
};

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
    cl_timed_loop = PyUnicode_InternFromString("_loop");
    cl_timed_ready = PyUnicode_InternFromString("_ready");
    return cl_timed_loop == NULL || cl_timed_ready == NULL ? -1 : 0;
}

#define CL_LOOP_STEP_METHODS \
    {"emit_step", cl_emit_step, METH_VARARGS, \
     "emit_step(start_ns, end_ns, task, stack, ready, victim, victim_stack)\n--\n\n" \
     "Record a callback of an event loop that took long."}

#endif
