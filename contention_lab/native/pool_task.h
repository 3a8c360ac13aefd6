/* A task that was given to a pool of threads: it waits for a worker, and then keeps him busy.
 *
 * Its wait is that of a party of its own, recorded when it is over; its run is a hold of its worker on the
 * pool.
 */
#ifndef CL_POOL_TASK_H
#define CL_POOL_TASK_H

#include "emit.h"

typedef struct {
    PyObject_HEAD
    PyObject *workers; /* owned: the pool's entry in the trace */
    uint32_t epoch, stack; /* the recording in which it waits; 0: it does not any more */
    uint32_t run_epoch;
    uint64_t start_ns;
    cl_permit permit; /* while it runs; start_ns 0: it does not, or is not recorded */
} cl_pool_task;

static PyTypeObject *cl_pool_task_type; /* kept */

/* A task that is being submitted here and now: a new reference, or NULL and an exception. */
static cl_pool_task *
cl_pool_task_make(PyObject *workers)
{
    cl_pool_task *self = (cl_pool_task *)cl_pool_task_type->tp_alloc(cl_pool_task_type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->workers = Py_NewRef(workers);
    cl_thread *thread = cl_recording_thread();
    if (thread != NULL) {
        self->epoch = thread->epoch;
        self->start_ns = cl_now() | 1u;
        if (cl_session.level >= CL_LEVEL_PROFILE) {
            self->stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
        }
    }
    return self;
}

/* What to call the type of an object that a method is bound to; of a class method, the class. */
static const char *
cl_pool_task_owner(PyObject *owner)
{
    const char *name = PyType_Check(owner) ? ((PyTypeObject *)owner)->tp_name : Py_TYPE(owner)->tp_name;
    const char *dot = strrchr(name, '.');
    return dot == NULL ? name : dot + 1;
}

/* The qualified name of a function or class, of another object that of its type: a new reference. */
static PyObject *
cl_pool_task_function(PyObject *function)
{
    PyObject *inner = PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
    if (PyFunction_Check(inner)) {
        return Py_NewRef(((PyFunctionObject *)inner)->func_qualname);
    }
    if (PyType_Check(inner)) {
        return PyType_GetQualName((PyTypeObject *)inner);
    }
    if (PyCFunction_Check(inner)) {
        const char *method = ((PyCFunctionObject *)inner)->m_ml->ml_name;
        PyObject *owner = PyCFunction_GET_SELF(inner); /* of a function: its module, or nothing */
        if (owner == NULL || PyModule_Check(owner)) {
            return PyUnicode_FromString(method);
        }
        return PyUnicode_FromFormat("%s.%s", cl_pool_task_owner(owner), method);
    }
    if (Py_IS_TYPE(inner, &PyMethodDescr_Type)) {
        PyObject *owner = (PyObject *)PyDescr_TYPE(inner);
        return PyUnicode_FromFormat("%s.%U", cl_pool_task_owner(owner), PyDescr_NAME(inner));
    }
    return PyType_GetQualName(Py_TYPE(function));
}

/* What to call a task, by its function, without asking anything of the program's: a new reference. */
static PyObject *
cl_pool_task_name(PyObject *function)
{
    PyObject *name = cl_pool_task_function(function);
    Py_ssize_t bytes;
    const char *text = name == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, &bytes), *last = NULL;
    static const char local[] = "<locals>.";
    for (const char *at = text; at != NULL && (at = strstr(at, local)) != NULL;) {
        last = at += sizeof local - 1;
    }
    if (last != NULL) {
        Py_SETREF(name, PyUnicode_FromStringAndSize(last, bytes - (last - text)));
    }
    if (name == NULL || text == NULL) {
        PyErr_Clear();
    }
    return name;
}

/* This thread, a worker, has taken it just now, to call `function` unless it has been cancelled. */
static void
cl_pool_task_begin(cl_pool_task *self, PyObject *function, int cancelled)
{
    cl_thread *thread = cl_recording_thread();
    if (thread == NULL || thread->epoch != self->epoch) {
        return;
    }
    self->epoch = 0; /* once */
    PyObject *name = cl_pool_task_name(function);
    PyObject *party = name == NULL ? NULL : cl_emit_party(NULL, name);
    Py_XDECREF(name);
    if (party == NULL) {
        PyErr_Clear();
        return;
    }
    cl_lock *workers = (cl_lock *)self->workers;
    cl_wait_record wait = {
        .start_ns = self->start_ns, .end_ns = cl_now(), .stack = self->stack,
        .thread = (uint32_t)PyLong_AsUnsignedLong(party), .kind = CL_COORDINATION,
        .outcome = cancelled ? CL_CANCELLED : CL_ACQUIRED};
    Py_DECREF(party);
    cl_emit(thread, workers, &wait);
    if (!cancelled) {
        cl_permit_begin(&self->permit, workers, thread, 0, 0, 1);
        cl_watch_begin(workers);
        self->run_epoch = thread->epoch;
    }
}

/* It has run, on this thread. */
static void
cl_pool_task_end(cl_pool_task *self)
{
    cl_thread *thread = cl_recording_thread();
    if (self->permit.start_ns != 0) {
        if (thread != NULL && thread->epoch == self->run_epoch) {
            cl_permit_end(&self->permit, (cl_lock *)self->workers, thread, cl_now(), 0, 0, 0);
        }
        self->permit.start_ns = 0;
        cl_watch_end((cl_lock *)self->workers);
    }
}

static void
cl_pool_task_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((cl_pool_task *)object)->workers);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

static PyType_Slot cl_pool_task_slots[] = {
    {Py_tp_doc, "A task that waits for a worker of a pool."},
    {Py_tp_dealloc, cl_pool_task_dealloc},
    {0, NULL},
};

static PyType_Spec cl_pool_task_spec = {
    .name = "contention_lab.native._core.PoolTask",
    .basicsize = sizeof(cl_pool_task),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = cl_pool_task_slots,
};

#endif
