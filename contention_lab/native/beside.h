/* What we know about an object of the program, kept beside it and not in it: a weak reference to the object,
 * with room for more in subtypes. Python classes keep such records in a table under the object's id
 * (capture/patches/beside.py); here is a quick way to find them again.
 */
#ifndef CL_BESIDE_H
#define CL_BESIDE_H

#include "emit.h"

typedef struct {
    PyWeakReference ref; /* first: it is one */
    void *key;           /* the object's address, for the table */
    uint32_t epoch;      /* the recording that the rest belongs to */
} cl_beside;

static PyTypeObject *cl_beside_type; /* kept */

#if !CL_FREE_THREADED

#  define CL_BESIDE_CACHE 1024 /* direct-mapped by class and object */

static cl_beside *cl_beside_cache[CL_BESIDE_CACHE]; /* borrowed; guarded by the GIL */

static cl_beside **
cl_beside_place(const void *cls, const void *thing)
{
    return &cl_beside_cache[cl_mix((uintptr_t)cls ^ (uintptr_t)thing * 31u) % CL_BESIDE_CACHE];
}

/* Leaves the cache before the record is gone. */
static void
cl_beside_uncache(cl_beside *record)
{
    cl_beside **place = cl_beside_place(Py_TYPE(record), record->key);
    if (*place == record) {
        *place = NULL;
    }
}

#endif

/* A new reference to what the record is about, NULL if that is gone. */
static PyObject *
cl_beside_thing(cl_beside *record)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *thing = NULL;
    if (PyWeakref_GetRef((PyObject *)record, &thing) < 0) {
        PyErr_Clear();
    }
    return thing;
#else
    PyObject *thing = PyWeakref_GET_OBJECT((PyObject *)record);
    return thing == Py_None ? NULL : Py_NewRef(thing);
#endif
}

static PyObject *cl_name_of; /* "of"; kept */

/* The record that `cls`, a class derived from Beside, has for `thing` in this recording: a new reference,
 * made by cls.of(thing) if need be. NULL: an exception. */
static inline cl_beside *
cl_beside_find(PyObject *cls, PyObject *thing)
{
#if !CL_FREE_THREADED
    cl_beside **place = cl_beside_place(cls, thing), *known = *place;
    if (known != NULL && known->ref.wr_object == thing && Py_IS_TYPE((PyObject *)known, (PyTypeObject *)cls)
        && known->epoch == atomic_load_explicit(&cl_epoch, memory_order_relaxed)) {
        return (cl_beside *)Py_NewRef((PyObject *)known);
    }
#endif
    PyObject *record = PyObject_CallMethodOneArg(cls, cl_name_of, thing);
    if (record != NULL && !PyObject_TypeCheck(record, cl_beside_type)) {
        PyErr_SetString(PyExc_TypeError, "of() returned no record");
        Py_CLEAR(record);
    }
#if !CL_FREE_THREADED
    if (record != NULL && (PyObject *)Py_TYPE(record) == cls) {
        *place = (cl_beside *)record;
    }
#endif
    return (cl_beside *)record;
}

/* Beside(thing, ...): calls cls.gone(record) when the thing goes. */
static PyObject *
cl_beside_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs; /* for subclasses */
    if (PyTuple_GET_SIZE(args) < 1) {
        PyErr_SetString(PyExc_TypeError, "a record is about something");
        return NULL;
    }
    PyObject *thing = PyTuple_GET_ITEM(args, 0);
    PyObject *gone = PyObject_GetAttrString((PyObject *)type, "gone");
    PyObject *pair = gone == NULL ? NULL : PyTuple_Pack(2, thing, gone);
    PyObject *self = pair == NULL ? NULL : _PyWeakref_RefType.tp_new(type, pair, NULL);
    if (self != NULL) {
        ((cl_beside *)self)->key = thing;
    }
    Py_XDECREF(gone);
    Py_XDECREF(pair);
    return self;
}

static int
cl_beside_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    (void)args;
    (void)kwargs;
    return 0;
}

static int
cl_beside_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    return _PyWeakref_RefType.tp_traverse(object, visit, arg);
}

static int
cl_beside_clear(PyObject *object)
{
    return _PyWeakref_RefType.tp_clear(object);
}

static void
cl_beside_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
#if !CL_FREE_THREADED
    cl_beside_uncache((cl_beside *)object);
#endif
    _PyWeakref_RefType.tp_dealloc(object);
    Py_DECREF((PyObject *)type);
}

static PyObject *
cl_beside_get_key(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((cl_beside *)object)->key);
}

static PyObject *
cl_beside_get_stale(PyObject *object, void *unused)
{
    (void)unused;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    return PyBool_FromLong(((cl_beside *)object)->epoch != epoch);
}

static PyObject *
cl_beside_forget(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((cl_beside *)object)->epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyGetSetDef cl_beside_attributes[] = {
    {"key", cl_beside_get_key, NULL, "The id of the object.", NULL},
    {"is_stale", cl_beside_get_stale, NULL, "Whether it belongs to another recording.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef cl_beside_methods[] = {
    {"forget", cl_beside_forget, METH_NOARGS, "forget()\n--\n\nBegin anew in this recording."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cl_beside_slots[] = {
    {Py_tp_doc, "Beside(thing)\n--\n\nA record about an object: a weak reference to it."},
    {Py_tp_new, cl_beside_new},
    {Py_tp_init, cl_beside_init},
    {Py_tp_dealloc, cl_beside_dealloc},
    {Py_tp_traverse, cl_beside_traverse},
    {Py_tp_clear, cl_beside_clear},
    {Py_tp_getset, cl_beside_attributes},
    {Py_tp_methods, cl_beside_methods},
    {0, NULL},
};

static PyType_Spec cl_beside_spec = {
    .name = "contention_lab.native._core.Beside",
    .basicsize = sizeof(cl_beside),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = cl_beside_slots,
};

/* Makes a type derived from `base` and adds it to the module; kept. NULL: an exception. */
static PyTypeObject *
cl_record_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
    PyObject *type = PyType_FromSpecWithBases(spec, (PyObject *)base);
    if (type != NULL && PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) < 0) {
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

static int
cl_beside_ready(PyObject *module)
{
    cl_name_of = PyUnicode_InternFromString("of");
    cl_beside_type = cl_name_of == NULL ? NULL
                                        : cl_record_type(module, &cl_beside_spec, &_PyWeakref_RefType);
    return cl_beside_type == NULL ? -1 : 0;
}

#endif
