/* What makes the stand-ins for threading.Lock and RLock pass for the originals: functions that make them,
 * and isinstance() in both directions.
 *
 * A program may have locks from before the recording, and may have kept type(threading.Lock()) from then.
 * isinstance(ours, original type) goes by __class__, which says the original type; isinstance(an original,
 * our type) goes by the type of our type.
 */
#ifndef CL_DROP_IN_H
#define CL_DROP_IN_H

#include "rlock.h"

static PyTypeObject *cl_raw_types[2]; /* _thread.lock and _thread.RLock; kept; NULL if replaced */
static PyTypeObject *cl_own_types[2]; /* ours for them; kept */

static PyObject *
cl_drop_in_class(PyObject *object, void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        if (Py_IS_TYPE(object, cl_own_types[i]) && cl_raw_types[i] != NULL) {
            return Py_NewRef((PyObject *)cl_raw_types[i]);
        }
    }
    return Py_NewRef((PyObject *)Py_TYPE(object));
}

static PyGetSetDef cl_drop_in_attributes[] = {
    {"__class__", cl_drop_in_class, NULL, "The class of the original.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *
cl_drop_in_check(PyObject *type, PyObject *object)
{
    for (int i = 0; i < 2; i++) {
        if (type == (PyObject *)cl_own_types[i] && cl_raw_types[i] != NULL
            && PyObject_TypeCheck(object, cl_raw_types[i])) {
            Py_RETURN_TRUE;
        }
    }
    return PyObject_CallMethod((PyObject *)&PyType_Type, "__instancecheck__", "OO", type, object);
}

static PyMethodDef cl_drop_in_type_methods[] = {
    {"__instancecheck__", cl_drop_in_check, METH_O, "Originals are instances too."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cl_drop_in_type_slots[] = {
    {Py_tp_methods, cl_drop_in_type_methods},
    {Py_tp_base, NULL}, /* type; filled in, its address is no constant */
    {0, NULL},
};

static PyType_Spec cl_drop_in_type_spec = {
    .name = "builtins.type",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TYPE_SUBCLASS | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = cl_drop_in_type_slots,
};

/* A type of `_thread`, if nobody has put another there (gevent); a new reference or NULL. */
static PyTypeObject *
cl_raw_type(PyObject *thread_module, const char *name, const char *full_name)
{
    PyObject *type = PyObject_GetAttrString(thread_module, name);
    if (type != NULL && PyType_Check(type) && strcmp(((PyTypeObject *)type)->tp_name, full_name) == 0) {
        return (PyTypeObject *)type;
    }
    PyErr_Clear();
    Py_XDECREF(type);
    return NULL;
}

/* Call after the types have been added to the module. -1: an exception. */
static int
cl_drop_in_ready(PyObject *module)
{
    cl_drop_in_type_slots[1].pfunc = &PyType_Type;
    PyObject *meta = PyType_FromSpec(&cl_drop_in_type_spec);
    if (meta == NULL) {
        return -1;
    }
    ((PyTypeObject *)meta)->tp_name = "type"; /* what its repr() says */
    static const char *const names[] = {"PlainLock", "PlainRLock"};
    for (int i = 0; i < 2; i++) {
        PyObject *type = PyObject_GetAttrString(module, names[i]);
        if (type == NULL) {
            Py_DECREF(meta);
            return -1;
        }
        cl_own_types[i] = (PyTypeObject *)type;
        Py_SET_TYPE(type, (PyTypeObject *)Py_NewRef(meta)); /* of the same layout: it adds no field */
    }
    Py_DECREF(meta);
    return 0;
}

/* The stand-in for threading.Lock takes no arguments, and says so as the type does since 3.13. */
static PyObject *
cl_plain_lock_make(PyTypeObject *type, Py_ssize_t arguments, Py_ssize_t keywords)
{
    if (keywords != 0) {
        PyErr_SetString(PyExc_TypeError, "lock() takes no keyword arguments");
        return NULL;
    }
    if (arguments != 0) {
        PyErr_Format(PyExc_TypeError, "lock expected 0 arguments, got %zd", arguments);
        return NULL;
    }
    cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
    if (lock != NULL) {
        cl_lock_init(lock, CL_KIND_MUTEX, NULL);
        lock->label = CL_LABEL_LOCK;
    }
    return (PyObject *)lock;
}

static PyObject *
cl_plain_lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return cl_plain_lock_make(type, PyTuple_GET_SIZE(args), kwargs == NULL ? 0 : PyDict_Size(kwargs));
}

static PyObject *
cl_plain_lock_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    (void)args;
    return cl_plain_lock_make((PyTypeObject *)type, PyVectorcall_NARGS(nargsf),
                              kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
}

/* Until 3.12 threading.Lock is a function, and `threading.Lock | None` an error. */
static PyObject *
cl_allocate_lock(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return cl_plain_lock_make(cl_own_types[0], 0, 0);
}

#define CL_DROP_IN_METHODS \
    {"allocate_lock", cl_allocate_lock, METH_NOARGS, \
     "allocate_lock() -> lock object\n(allocate() is an obsolete synonym)\n\n" \
     "Create a new lock object. See help(type(threading.Lock())) for\n" \
     "information about locks."}, \
    {"allocate", cl_allocate_lock, METH_NOARGS, \
     "allocate_lock() -> lock object\n(allocate() is an obsolete synonym)\n\n" \
     "Create a new lock object. See help(type(threading.Lock())) for\n" \
     "information about locks."}

#endif
