/* What makes the stand-ins for threading.Lock and RLock pass for the originals: functions that make them,
 * and isinstance() in both directions.
 *
 * A program may have locks from before the recording, and may have kept type(threading.Lock()) from then.
 * isinstance() goes by __class__: that of ours says the original type, unless nobody can have kept it, and that
 * of an original says our type as long as the recording lasts. Afterwards originals look as ever, and whoever
 * has kept our type is answered by the type of that.
 */
#ifndef CL_DROP_IN_H
#define CL_DROP_IN_H

#include "rlock.h"

static PyTypeObject *cl_raw_types[2]; /* _thread.lock and _thread.RLock; kept; NULL if replaced */
static PyTypeObject *cl_own_types[2]; /* ours for them; kept */
static PyTypeObject *cl_own_meta;     /* what our types are of, when nothing is recorded; kept */

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

static PyObject *
cl_raw_class(PyObject *object, void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        if (Py_IS_TYPE(object, cl_raw_types[i])) {
            return Py_NewRef((PyObject *)cl_own_types[i]);
        }
    }
    return Py_NewRef((PyObject *)Py_TYPE(object));
}

/* Setting it does, or refuses, what it does for any object. */
static int
cl_drop_in_set_class(PyObject *object, PyObject *value, void *unused)
{
    (void)unused;
    PyObject *attributes = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__dict__");
    PyObject *usual = attributes == NULL ? NULL : PyMapping_GetItemString(attributes, "__class__");
    int done = usual == NULL ? -1 : Py_TYPE(usual)->tp_descr_set(usual, object, value);
    Py_XDECREF(usual);
    Py_XDECREF(attributes);
    return done;
}

static PyGetSetDef cl_drop_in_attribute = {"__class__", cl_drop_in_class, cl_drop_in_set_class, NULL, NULL};
static PyGetSetDef cl_raw_attribute = {"__class__", cl_raw_class, cl_drop_in_set_class, NULL, NULL};

/* Gives a type an attribute of its own, or takes it away (NULL). -1: an exception. */
static int
cl_drop_in_attach(PyTypeObject *type, PyGetSetDef *attribute)
{
    PyObject *descriptor = attribute == NULL ? NULL : PyDescr_NewGetSet(type, attribute);
    int has_one = PyMapping_HasKeyString(type->tp_dict, "__class__");
    int done = descriptor != NULL  ? PyDict_SetItemString(type->tp_dict, "__class__", descriptor)
               : attribute != NULL ? -1
               : has_one           ? PyDict_DelItemString(type->tp_dict, "__class__")
                                   : 0;
    PyType_Modified(type);
    Py_XDECREF(descriptor);
    return done;
}

static void
cl_drop_in_set_type(PyObject *object, PyTypeObject *type)
{
    PyTypeObject *before = Py_TYPE(object);
    Py_SET_TYPE(object, (PyTypeObject *)Py_NewRef((PyObject *)type)); /* of the same layout: it adds no field */
    PyType_Modified((PyTypeObject *)object); /* the interpreter remembers what calls and attributes of it are */
    Py_DECREF((PyObject *)before);
}

/* drop_in_begins(unseen): ours are put in the place of the originals, whose types nobody has seen so far. */
static PyObject *
cl_drop_in_begins(PyObject *module, PyObject *unseen)
{
    (void)module;
    for (int i = 0; i < 2; i++) {
        if (cl_raw_types[i] == NULL) {
            continue;
        }
        if (cl_drop_in_attach(cl_raw_types[i], &cl_raw_attribute) < 0
            || cl_drop_in_attach(cl_own_types[i], unseen == Py_True ? NULL : &cl_drop_in_attribute) < 0) {
            return NULL;
        }
        cl_drop_in_set_type((PyObject *)cl_own_types[i], &PyType_Type);
    }
    Py_RETURN_NONE;
}

/* drop_in_ends(): the originals are back. */
static PyObject *
cl_drop_in_ends(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (int i = 0; i < 2; i++) {
        cl_drop_in_set_type((PyObject *)cl_own_types[i], cl_own_meta);
        if (cl_drop_in_attach(cl_own_types[i], &cl_drop_in_attribute) < 0
            || (cl_raw_types[i] != NULL && cl_drop_in_attach(cl_raw_types[i], NULL) < 0)) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

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

static PyObject *cl_allocate_lock(PyObject *module, PyObject *unused);

/* Adds functions that make our locks: those of `_thread`, but for what they do. -1: an exception. */
static int
cl_drop_in_add_makers(PyObject *module)
{
    static const char *const names[] = {"allocate_lock", "allocate"};
    static PyMethodDef makers[] = {{"allocate_lock", cl_allocate_lock, METH_NOARGS, NULL},
                                   {"allocate", cl_allocate_lock, METH_NOARGS, NULL}};
    PyObject *thread_module = PyImport_ImportModule("_thread"), *name = PyUnicode_FromString("_thread");
    int done = thread_module == NULL || name == NULL ? -1 : 0;
    for (int i = 0; i < 2 && done == 0; i++) {
        PyObject *original = PyObject_GetAttrString(thread_module, names[i]);
        if (original != NULL && PyCFunction_CheckExact(original)) {
            makers[i].ml_doc = ((PyCFunctionObject *)original)->m_ml->ml_doc;
        }
        PyErr_Clear();
        Py_XDECREF(original);
        PyObject *maker = PyCFunction_NewEx(&makers[i], thread_module, name);
        done = maker == NULL ? -1 : PyModule_AddObjectRef(module, names[i], maker);
        Py_XDECREF(maker);
    }
    Py_XDECREF(name);
    Py_XDECREF(thread_module);
    return done;
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
    cl_own_meta = (PyTypeObject *)meta;
    cl_own_meta->tp_name = "type"; /* what its repr() says */
    static const char *const names[] = {"PlainLock", "PlainRLock"};
    for (int i = 0; i < 2; i++) {
        PyObject *type = PyObject_GetAttrString(module, names[i]);
        if (type == NULL) {
            return -1;
        }
        cl_own_types[i] = (PyTypeObject *)type;
    }
    PyObject *done = cl_drop_in_ends(module, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : cl_drop_in_add_makers(module);
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
    {"drop_in_begins", cl_drop_in_begins, METH_O, \
     "drop_in_begins(unseen)\n--\n\n" \
     "Our types pass for those of _thread; unseen: nobody can have kept these so far."}, \
    {"drop_in_ends", cl_drop_in_ends, METH_NOARGS, \
     "drop_in_ends()\n--\n\nThose of _thread are themselves again."}

#endif
