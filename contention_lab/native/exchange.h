/* Putting a lock of ours in the place of one that exists, in all the places that refer to it, or nowhere.
 *
 * Python code has found the places; here they are checked and changed in one go: with a GIL nobody runs in
 * between. A reference that is not among the places (a local variable of a running function, C code, a
 * thread on its way into acquire()) shows in the reference count, and then nothing is changed. Without a
 * GIL the caller makes sure that there is no other thread.
 */
#ifndef CL_EXCHANGE_H
#define CL_EXCHANGE_H

#include "drop_in.h"
#include "lock_type.h"

enum { CL_IN_DICT, CL_IN_LIST, CL_IN_CELL, CL_IN_CLASS, CL_IN_SLOT };

#define CL_OWN_REFERENCES 2 /* the caller's: its own, and the argument on its stack */

/* stand_in(type, name): a free lock of a stand-in type for one that exists, without a creation site. */
static PyObject *
cl_stand_in(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *name;
    if (!PyArg_ParseTuple(args, "O!U:stand_in", &PyType_Type, &type, &name)) {
        return NULL;
    }
    PyObject *made = type == (PyObject *)cl_own_types[0] ? cl_allocate_lock(NULL, NULL)
                                                         : PyObject_CallNoArgs(type);
    if (made == NULL) {
        return NULL;
    }
    cl_lock *lock = cl_as_ours(made);
    if (lock == NULL) {
        PyErr_SetString(PyExc_TypeError, "stand_in() takes a lock type of ours");
        Py_DECREF(made);
        return NULL;
    }
    Py_CLEAR(lock->site_code);
    lock->via = NULL;
    Py_XSETREF(lock->name, Py_NewRef(name));
    return made;
}

static int
cl_exchange_set(long kind, PyObject *container, PyObject *key, PyObject *value)
{
    switch (kind) {
    case CL_IN_DICT:
        return PyDict_SetItem(container, key, value);
    case CL_IN_LIST: {
        Py_ssize_t at = PyLong_AsSsize_t(key);
        return PyList_SetItem(container, at, Py_NewRef(value));
    }
    case CL_IN_CELL:
        return PyCell_Set(container, value);
    case CL_IN_CLASS: /* not through a metaclass; keeps the type's caches right */
        return PyType_Type.tp_setattro(container, key, value);
    case CL_IN_SLOT: { /* key: the member descriptor */
        descrsetfunc set = Py_TYPE(key)->tp_descr_set;
        if (set == NULL) {
            PyErr_SetString(PyExc_TypeError, "not a slot");
            return -1;
        }
        return set(key, container, value);
    }
    default:
        PyErr_SetString(PyExc_ValueError, "no such place");
        return -1;
    }
}

/* What is in the place now, a new reference, or NULL without an exception. */
static PyObject *
cl_exchange_get(long kind, PyObject *container, PyObject *key)
{
    PyObject *value = NULL;
    switch (kind) {
    case CL_IN_DICT:
        value = PyDict_Check(container) ? cl_dict_get(container, key) : NULL;
        break;
    case CL_IN_LIST: {
        Py_ssize_t at = PyLong_AsSsize_t(key);
        if (PyList_Check(container) && at >= 0 && at < PyList_GET_SIZE(container)) {
            value = Py_NewRef(PyList_GET_ITEM(container, at));
        }
        break;
    }
    case CL_IN_CELL:
        value = PyCell_Check(container) ? PyCell_Get(container) : NULL;
        break;
    case CL_IN_CLASS: {
        PyObject *fields = PyType_Check(container) ? PyObject_GetAttrString(container, "__dict__") : NULL;
        value = fields == NULL ? NULL : PyObject_GetItem(fields, key);
        Py_XDECREF(fields);
        break;
    }
    case CL_IN_SLOT: {
        descrgetfunc get = Py_TYPE(key)->tp_descr_get;
        value = get == NULL ? NULL : get(key, container, (PyObject *)Py_TYPE(container));
        break;
    }
    default:
        break;
    }
    PyErr_Clear();
    return value;
}

/* Whether nobody holds it: 1 or 0, -1 with an exception. It is left as it was. */
static int
cl_exchange_is_free(PyObject *lock)
{
    if (PyObject_HasAttrString(lock, "_release_save")) { /* re-entrant: acquire() may succeed by us */
        PyObject *mine = PyObject_CallMethod(lock, "_is_owned", NULL);
        int owned = mine == NULL ? -1 : PyObject_IsTrue(mine);
        Py_XDECREF(mine);
        if (owned != 0) {
            return owned < 0 ? -1 : 0;
        }
    }
    PyObject *got = PyObject_CallMethod(lock, "acquire", "O", Py_False);
    int acquired = got == NULL ? -1 : PyObject_IsTrue(got);
    Py_XDECREF(got);
    if (acquired > 0) {
        PyObject *released = PyObject_CallMethod(lock, "release", NULL);
        if (released == NULL) {
            return -1;
        }
        Py_DECREF(released);
    }
    return acquired;
}

/* Whether all references to the lock and to its bound methods are in the places: `which` is 0 for the lock
 * itself, n for the n-th method. */
static int
cl_exchange_is_complete(PyObject *lock, PyObject *places, PyObject *methods)
{
    Py_ssize_t count = PyList_GET_SIZE(methods);
    for (Py_ssize_t which = 0; which <= count; which++) {
        PyObject *object = which == 0 ? lock : PyList_GET_ITEM(methods, which - 1);
        Py_ssize_t found = 0;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); i++) {
            PyObject *place = PyList_GET_ITEM(places, i);
            if (PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 3)) != which) {
                continue;
            }
            PyObject *there = cl_exchange_get(PyLong_AsLong(PyTuple_GET_ITEM(place, 0)),
                                              PyTuple_GET_ITEM(place, 1), PyTuple_GET_ITEM(place, 2));
            Py_XDECREF(there); /* `methods` and the caller hold it */
            if (there != object) {
                return 0; /* the program has changed it since */
            }
            found++;
        }
        Py_ssize_t own = which == 0 ? CL_OWN_REFERENCES + count : 1;
        if (Py_REFCNT(object) != own + found) {
            return 0;
        }
    }
    return 1;
}

/* exchange(old, new, places, methods): None if done, else why not. places: a list of tuples (kind,
 * container, key, which); methods: the bound methods of `old` that are kept somewhere. */
static PyObject *
cl_exchange(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 4 || !PyList_CheckExact(args[2]) || !PyList_CheckExact(args[3])) {
        PyErr_SetString(PyExc_TypeError, "exchange() takes two locks and two lists");
        return NULL;
    }
    PyObject *old = args[0], *new = args[1], *places = args[2], *methods = args[3];
    Py_ssize_t done = 0, count = PyList_GET_SIZE(places);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *place = PyList_GET_ITEM(places, i);
        if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 4
            || PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 3)) < 0
            || PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 3)) > PyList_GET_SIZE(methods)) {
            PyErr_SetString(PyExc_TypeError, "a place is (kind, container, key, which)");
            return NULL;
        }
    }
    PyObject *values = PyList_New(0); /* of the lock and each method: what is there, what comes */
    if (values == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(methods); i++) {
        PyObject *name = PyObject_GetAttrString(PyList_GET_ITEM(methods, i), "__name__");
        PyObject *method = name == NULL ? NULL : PyObject_GetAttr(new, name);
        Py_XDECREF(name);
        if (method == NULL || PyList_Append(values, method) < 0) {
            Py_XDECREF(method);
            Py_DECREF(values);
            PyErr_Clear();
            return PyUnicode_FromString("its methods are kept, and ours has others");
        }
        Py_DECREF(method);
    }
    const char *why = NULL;
    int is_free = cl_exchange_is_free(old);
    if (is_free < 0) {
        Py_DECREF(values);
        return NULL;
    }
    if (!is_free) {
        why = "held";
    }
    else if (!cl_exchange_is_complete(old, places, methods)) {
        why = "referred to from a running function, from C or from a place that cannot be changed";
    }
    while (why == NULL && done < count) {
        PyObject *place = PyList_GET_ITEM(places, done);
        Py_ssize_t which = PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 3));
        PyObject *value = which == 0 ? new : PyList_GET_ITEM(values, which - 1);
        if (cl_exchange_set(PyLong_AsLong(PyTuple_GET_ITEM(place, 0)), PyTuple_GET_ITEM(place, 1),
                            PyTuple_GET_ITEM(place, 2), value) < 0) {
            PyErr_Clear();
            why = "in a place that refused another";
            break;
        }
        done++;
    }
    while (why != NULL && done > 0) { /* what has been changed had accepted the old one before */
        PyObject *place = PyList_GET_ITEM(places, --done);
        Py_ssize_t which = PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 3));
        PyObject *value = which == 0 ? old : PyList_GET_ITEM(methods, which - 1);
        if (cl_exchange_set(PyLong_AsLong(PyTuple_GET_ITEM(place, 0)), PyTuple_GET_ITEM(place, 1),
                            PyTuple_GET_ITEM(place, 2), value) < 0) {
            PyErr_Clear();
        }
    }
    Py_DECREF(values);
    if (why != NULL) {
        return PyUnicode_FromString(why);
    }
    Py_RETURN_NONE;
}

#endif
