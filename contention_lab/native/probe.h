/* A call into the recorder from within a function of the program's: a constant of its code object that does
 * its work as the left side of an `@` (capture/patches/probes.py puts it there). Nothing is on the stack for
 * it.
 *
 * An operator and not a call, because compilers warn of constants that are called. What one probe of a frame
 * returns can be kept for a later one of the same frame, which has no variable of ours to find it in: by the
 * frame's address, which is its own as long as it runs or, in a coroutine, waits.
 */
#ifndef CL_PROBE_H
#define CL_PROBE_H

#include "emit.h"
#include "pending.h"

enum { CL_KEEPS_NOTHING, CL_KEEPS_LAST, CL_KEEPS_FIRST };

#define CL_PROBE_MOST 4 /* arguments on the right side */

typedef struct {
    PyObject_HEAD
    PyObject *function;
    PyObject *bound; /* its first argument; or NULL */
    PyObject *begin; /* the probe whose kept result this one takes out; or NULL */
    int keeps;
    PyCFunction plain;         /* of a function of one argument: itself; or NULL */
    _PyCFunctionFast with_all; /* of a function of several ones; or NULL */
} cl_probe;

static PyTypeObject *cl_probe_type; /* kept */

/* What tells the Python frame that has called us from all others that have not ended. */
static const void *
cl_probe_frame(void)
{
    cl_cursor cursor = cl_cursor_begin();
    const void *frame = cursor.frame;
    cl_cursor_end(&cursor);
    return frame;
}

/* The arguments that the right side stands for: borrowed from it. -1: an exception. */
static Py_ssize_t
cl_probe_arguments(PyObject *right, PyObject **args)
{
    if (!PyTuple_CheckExact(right)) {
        args[0] = right;
        return 1;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(right);
    if (count > CL_PROBE_MOST) {
        PyErr_SetString(PyExc_TypeError, "too many arguments for a probe");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        args[i] = PyTuple_GET_ITEM(right, i);
    }
    return count;
}

/* A function of this module is called as it is, without what Python puts around that. */
static void
cl_probe_know(cl_probe *self)
{
    if (!PyCFunction_CheckExact(self->function)) {
        return;
    }
    PyMethodDef *method = ((PyCFunctionObject *)self->function)->m_ml;
    if (method->ml_flags == METH_O) {
        self->plain = method->ml_meth;
    }
    else if (method->ml_flags == METH_FASTCALL) {
        self->with_all = (_PyCFunctionFast)(void (*)(void))method->ml_meth;
    }
}

static PyObject *
cl_probe_call(cl_probe *self, PyObject *kept, PyObject *right)
{
    PyObject *args[1 + 2 + CL_PROBE_MOST], **at = args + 1;
    if (kept != NULL) {
        *at++ = kept;
    }
    if (self->bound != NULL) {
        *at++ = self->bound;
    }
    Py_ssize_t count = cl_probe_arguments(right, at);
    if (count < 0) {
        return NULL;
    }
    count += at - (args + 1);
    if (self->with_all != NULL) {
        return self->with_all(PyCFunction_GET_SELF(self->function), args + 1, count);
    }
    size_t nargs = (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET;
    return PyObject_Vectorcall(self->function, args + 1, nargs, NULL);
}

/* Begins something that another probe of this frame ends. */
static PyObject *
cl_probe_begin(cl_probe *self, PyObject *right)
{
    const void *frame = cl_probe_frame();
    if (self->keeps == CL_KEEPS_FIRST && cl_pending_has(frame, self)) {
        Py_RETURN_NONE;
    }
    PyObject *kept = cl_probe_call(self, NULL, right);
    if (kept == NULL || kept == Py_None) {
        return kept;
    }
    Py_XDECREF(cl_pending_put(frame, self, kept));
    Py_RETURN_NONE;
}

/* Ends what another probe of this frame has begun, if it has. */
static PyObject *
cl_probe_end(cl_probe *self, PyObject *right)
{
    PyObject *kept = cl_pending_some() ? cl_pending_take(cl_probe_frame(), self->begin) : NULL;
    if (kept == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *done = cl_probe_call(self, kept, right);
    Py_DECREF(kept);
    return done;
}

static PyObject *
cl_probe_operate(PyObject *left, PyObject *right)
{
    if (!Py_IS_TYPE(left, cl_probe_type)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    cl_probe *self = (cl_probe *)left;
    if (self->begin != NULL) {
        return cl_probe_end(self, right);
    }
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0) {
        Py_RETURN_NONE; /* a frame that outlives the recording */
    }
    if (self->plain != NULL && self->bound == NULL && self->keeps == CL_KEEPS_NOTHING
        && !PyTuple_CheckExact(right)) {
        return self->plain(PyCFunction_GET_SELF(self->function), right);
    }
    return self->keeps == CL_KEEPS_NOTHING ? cl_probe_call(self, NULL, right)
                                           : cl_probe_begin(self, right);
}

static PyObject *
cl_probe_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", "bound", "keeps", "begin", NULL};
    PyObject *function, *bound = NULL, *begin = NULL;
    int keeps = CL_KEEPS_NOTHING;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OiO!:Probe", keywords, &function, &bound, &keeps,
                                     cl_probe_type, &begin)) {
        return NULL;
    }
    cl_probe *self = (cl_probe *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->function = Py_NewRef(function);
        self->bound = bound == Py_None ? NULL : Py_XNewRef(bound);
        self->begin = Py_XNewRef(begin);
        self->keeps = keeps;
        cl_probe_know(self);
    }
    return (PyObject *)self;
}

static int
cl_probe_traverse(PyObject *object, visitproc visit, void *arg)
{
    cl_probe *self = (cl_probe *)object;
    Py_VISIT(self->function);
    Py_VISIT(self->bound);
    Py_VISIT(self->begin);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int
cl_probe_clear(PyObject *object)
{
    cl_probe *self = (cl_probe *)object;
    Py_CLEAR(self->function);
    Py_CLEAR(self->bound);
    Py_CLEAR(self->begin);
    return 0;
}

static void
cl_probe_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    cl_probe_clear(object);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

static PyType_Slot cl_probe_slots[] = {
    {Py_tp_doc, "Probe(function, bound=None, keeps=0, begin=...)\n--\n\n"
                "probe @ (x, y) calls function(bound, x, y); with `begin`, function(kept, bound, x, y)."},
    {Py_tp_new, cl_probe_new},
    {Py_tp_dealloc, cl_probe_dealloc},
    {Py_tp_traverse, cl_probe_traverse},
    {Py_tp_clear, cl_probe_clear},
    {Py_nb_matrix_multiply, cl_probe_operate},
    {0, NULL},
};

static PyType_Spec cl_probe_spec = {
    .name = "contention_lab.native._core.Probe",
    .basicsize = sizeof(cl_probe),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = cl_probe_slots,
};

static int
cl_probe_ready(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&cl_probe_spec);
    if (type == NULL || PyModule_AddObjectRef(module, "Probe", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    cl_probe_type = (PyTypeObject *)type;
    return 0;
}

#endif
