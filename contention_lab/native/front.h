/* A callable before another one, without a Python frame of its own: the program's tracebacks stay as they
 * are. Stands before functions of `os` that end the process or start another.
 *
 * before(*args, **kwargs) may return other arguments, as (args, kwargs), or None for the same. If the
 * function raises, failed() is called; after() is in any case. What goes wrong in these is reported as
 * unraisable and does not keep the function from being called.
 */
#ifndef CL_FRONT_H
#define CL_FRONT_H

#include "contain.h"

typedef struct {
    PyObject_HEAD
    PyObject *function, *before, *failed, *after; /* the last two may be NULL */
} cl_front;

static PyObject *
cl_front_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", "before", "failed", "after", NULL};
    PyObject *function, *before, *failed = NULL, *after = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:Front", keywords, &function, &before, &failed,
                                     &after)) {
        return NULL;
    }
    cl_front *self = (cl_front *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->function = Py_NewRef(function);
        self->before = Py_NewRef(before);
        self->failed = Py_XNewRef(failed == Py_None ? NULL : failed);
        self->after = Py_XNewRef(after == Py_None ? NULL : after);
    }
    return (PyObject *)self;
}

static int
cl_front_traverse(PyObject *object, visitproc visit, void *arg)
{
    cl_front *self = (cl_front *)object;
    Py_VISIT(self->function);
    Py_VISIT(self->before);
    Py_VISIT(self->failed);
    Py_VISIT(self->after);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int
cl_front_clear(PyObject *object)
{
    cl_front *self = (cl_front *)object;
    Py_CLEAR(self->function);
    Py_CLEAR(self->before);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->after);
    return 0;
}

static void
cl_front_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    cl_front_clear(object);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

/* Calls it with the exception of the function, if there is one, put aside. */
static void
cl_front_call_aside(PyObject *callable)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *done = PyObject_CallNoArgs(callable);
    if (done == NULL) {
        PyErr_WriteUnraisable(callable);
    }
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

static PyObject *
cl_front_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    cl_front *self = (cl_front *)object;
    PyObject *other = PyObject_Call(self->before, args, kwargs);
    if (other == NULL && cl_contain(self->before) < 0) {
        return NULL;
    }
    if (other != NULL && PyTuple_Check(other) && PyTuple_GET_SIZE(other) == 2
        && PyTuple_Check(PyTuple_GET_ITEM(other, 0)) && PyDict_Check(PyTuple_GET_ITEM(other, 1))) {
        args = PyTuple_GET_ITEM(other, 0);
        kwargs = PyTuple_GET_ITEM(other, 1);
    }
    PyObject *result = PyObject_Call(self->function, args, kwargs);
    Py_XDECREF(other);
    if (result == NULL && self->failed != NULL) {
        cl_front_call_aside(self->failed);
    }
    if (self->after != NULL) {
        cl_front_call_aside(self->after);
    }
    return result;
}

/* Whatever we do not have ourselves, __name__ and the text signature among it, is the function's. */
static PyObject *
cl_front_getattro(PyObject *object, PyObject *name)
{
    static const char *const ours[] = {"__class__", "__call__"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (PyUnicode_CompareWithASCIIString(name, ours[i]) == 0) {
            return PyObject_GenericGetAttr(object, name);
        }
    }
    return PyObject_GetAttr(((cl_front *)object)->function, name);
}

static PyObject *
cl_front_repr(PyObject *object)
{
    return PyObject_Repr(((cl_front *)object)->function);
}

static PyType_Slot cl_front_slots[] = {
    {Py_tp_doc, "Front(function, before, failed=None, after=None)\n--\n\n"
                "Calls before(*args), then the function with what it returned or the same arguments."},
    {Py_tp_new, cl_front_new},
    {Py_tp_dealloc, cl_front_dealloc},
    {Py_tp_traverse, cl_front_traverse},
    {Py_tp_clear, cl_front_clear},
    {Py_tp_call, cl_front_call},
    {Py_tp_getattro, cl_front_getattro},
    {Py_tp_repr, cl_front_repr},
    {0, NULL},
};

static PyType_Spec cl_front_spec = {
    .name = "contention_lab.native._core.Front",
    .basicsize = sizeof(cl_front),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = cl_front_slots,
};

#endif
