/* C code around a function of Python's, in the place through which the interpreter calls it.
 *
 * The function stays the object that it was: whoever kept it, derives from its class or looks at it finds
 * nothing changed, and no frame of ours is in a traceback or on a stack. What is put around it calls the
 * original with the same arguments.
 *
 * Two kinds of calls do not go through that place. Those of Python 3.11, whose interpreter enters a function
 * by its type: there it becomes an instance of a type derived from that of functions, of the same layout and
 * name, as long as it is recorded. And those of an `__init__` that later versions enter by its class: they do so
 * only if its instances are allocated in the usual way, so they are allocated by a function of ours that does
 * the same.
 */
#ifndef CL_AROUND_H
#define CL_AROUND_H

#include "pycompat.h"

typedef struct {
    const char *name;
    vectorcallfunc call;
    PyObject **context; /* where the class goes that it keeps its records in; NULL: it needs none */
} cl_around;

/* What calls a function that nobody has put anything around: the interpreter's own. */
static vectorcallfunc cl_around_original;

static PyObject *
cl_around_reduce(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(object, "__qualname__"); /* pickled and copied by name, as a function is */
}

static PyObject *
cl_around_class(PyObject *object, void *unused)
{
    (void)object;
    (void)unused;
    return Py_NewRef((PyObject *)&PyFunction_Type);
}

static PyMethodDef cl_around_type_methods[] = {
    {"__reduce__", cl_around_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cl_around_type_attributes[] = {
    {"__class__", cl_around_class, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject cl_around_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "function",
    .tp_methods = cl_around_type_methods,
    .tp_getset = cl_around_type_attributes,
};

static int
cl_around_ready(void)
{
    PyObject *globals = PyDict_New();
    PyObject *code = (PyObject *)PyCode_NewEmpty("", "", 1);
    PyObject *function = globals == NULL || code == NULL ? NULL : PyFunction_New(code, globals);
    if (function != NULL) {
        cl_around_original = ((PyFunctionObject *)function)->vectorcall;
    }
    Py_XDECREF(function);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    if (function == NULL) {
        return -1;
    }
    cl_around_type.tp_base = &PyFunction_Type;
    cl_around_type.tp_basicsize = PyFunction_Type.tp_basicsize;
    cl_around_type.tp_vectorcall_offset = PyFunction_Type.tp_vectorcall_offset;
    cl_around_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
                              | Py_TPFLAGS_METHOD_DESCRIPTOR;
    cl_around_type.tp_traverse = PyFunction_Type.tp_traverse;
    cl_around_type.tp_clear = PyFunction_Type.tp_clear;
    cl_around_type.tp_call = PyVectorcall_Call;
    cl_around_type.tp_descr_get = PyFunction_Type.tp_descr_get;
    if (PyType_Ready(&cl_around_type) < 0) {
        return -1;
    }
    /* A type has a text of its own, if only None, which would stand before its instances'. */
    PyObject *attributes = PyObject_GetAttrString((PyObject *)&PyFunction_Type, "__dict__");
    PyObject *text = attributes == NULL ? NULL : PyMapping_GetItemString(attributes, "__doc__");
    int done = text == NULL ? -1 : PyDict_SetItemString(cl_around_type.tp_dict, "__doc__", text);
    PyType_Modified(&cl_around_type);
    Py_XDECREF(text);
    Py_XDECREF(attributes);
    return done;
}

static PyObject *
cl_around_alloc(PyTypeObject *type, Py_ssize_t items)
{
    return PyType_GenericAlloc(type, items);
}

/* Has instances of a class, and of those derived from it, allocated in a way, if they still are in the other. */
static void
cl_around_allocate(PyTypeObject *cls, allocfunc now, allocfunc before)
{
    if (cls->tp_alloc == before) {
        cls->tp_alloc = now;
    }
    PyObject *derived = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", cls);
    for (Py_ssize_t i = 0; derived != NULL && i < PyList_GET_SIZE(derived); i++) {
        cl_around_allocate((PyTypeObject *)PyList_GET_ITEM(derived, i), now, before);
    }
    if (derived == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(derived);
}

/* Puts `call` around a function that is `name` in a class; 0: it is no function of Python's, or there is
 * something around it already. Whoever calls it meanwhile gets one or the other: both are right. */
static int
cl_around_put(PyObject *function, PyTypeObject *owner, const char *name, vectorcallfunc call)
{
    PyFunctionObject *self = (PyFunctionObject *)function;
    if (!PyFunction_Check(function) || self->vectorcall != cl_around_original) {
        return 0;
    }
    cl_function_set_vectorcall(self, call);
    if (CL_FUNCTIONS_BY_TYPE) {
        Py_SET_TYPE(function, &cl_around_type);
        PyType_Modified(owner);
    }
    else if (CL_INIT_BY_CLASS && strcmp(name, "__init__") == 0) {
        cl_around_allocate(owner, cl_around_alloc, PyType_GenericAlloc);
        PyType_Modified(owner); /* and with it those derived from it: calls by class are looked up anew */
    }
    return 1;
}

static void
cl_around_remove(PyTypeObject *owner, PyObject *function)
{
    if (Py_IS_TYPE(function, &cl_around_type)) {
        Py_SET_TYPE(function, &PyFunction_Type);
    }
    cl_around_allocate(owner, PyType_GenericAlloc, cl_around_alloc);
    cl_function_set_vectorcall((PyFunctionObject *)function, cl_around_original);
}

#endif
