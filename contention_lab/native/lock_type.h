/* What the Python types of locks are made of: the interface of threading.Lock, argument by argument. */
#ifndef CL_LOCK_TYPE_H
#define CL_LOCK_TYPE_H

#include <stddef.h>
#include <structmember.h>

#include "lock_arguments.h"
#include "lock_record.h"

/* Fills a fresh lock; takes no references but its own. */
/* Made by exec() from a text, as the `__init__` of a dataclass: its lines are in no file. */
static int
cl_is_from_text(PyCodeObject *code)
{
    return PyUnicode_CompareWithASCIIString(code->co_filename, "<string>") == 0;
}

static void
cl_lock_init(cl_lock *lock, int kind, PyObject *name)
{
    lock->id = atomic_fetch_add_explicit(&cl_next_lock_id, 1, memory_order_relaxed) + 1;
    lock->kind = (uint8_t)kind;
    lock->yield_after = UINT32_MAX;
    lock->park_after = UINT32_MAX;
    lock->name = Py_XNewRef(name == Py_None ? NULL : name);
    /* The innermost frame of user code in a file, or of user code, or of a library that makes a lock while
     * it is imported, or of all. */
    cl_cursor cursor = cl_cursor_begin();
    cl_position position;
    int has_text = 0;
    while (cl_cursor_next(&cursor, &position)) {
        int owner = cl_code_owner(position.code);
        if (owner == CL_HIDDEN) {
            continue;
        }
        int is_text = owner == CL_USER && cl_is_from_text(position.code);
        int last = !is_text
                   && (owner == CL_USER
                       || (!has_text
                           && PyUnicode_CompareWithASCIIString(position.code->co_name, "<module>") == 0));
        if (lock->site_code == NULL || last || (is_text && !has_text)) {
            Py_XSETREF(lock->site_code, (PyCodeObject *)Py_NewRef((PyObject *)position.code));
            lock->site_lasti = position.lasti;
        }
        if (last) {
            break;
        }
        has_text |= is_text;
        if (owner == CL_LIBRARY && !has_text) {
            lock->via = position.code; /* pinned by cl_code_owner() */
        }
    }
    cl_cursor_end(&cursor);
}

static int
cl_check_name(PyTypeObject *type, PyObject *name)
{
    if (name == NULL || name == Py_None || PyUnicode_Check(name)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s name must be a str or None, not %.100s", type->tp_name,
                 Py_TYPE(name)->tp_name);
    return -1;
}

static PyObject *
cl_mutex_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", NULL};
    PyObject *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Mutex", keywords, &name)
        || cl_check_name(type, name) < 0) {
        return NULL;
    }
    cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
    if (lock != NULL) {
        cl_lock_init(lock, CL_KIND_MUTEX, name);
    }
    return (PyObject *)lock;
}

/* A round count: None is `otherwise`. -1 with an exception if it is no positive int. */
static int
cl_rounds(PyObject *value, const char *what, uint32_t *rounds)
{
    if (value == NULL || value == Py_None) {
        return 0;
    }
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (number < 1 || number >= UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be a positive number of rounds or None, not %lld", what,
                     number);
        return -1;
    }
    *rounds = (uint32_t)number;
    return 0;
}

static PyObject *
cl_spin_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "backoff", "yield_after", "park_after", NULL};
    PyObject *name = NULL, *yield_after = NULL, *park_after = NULL;
    int backoff = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$pOO:SpinLock", keywords, &name, &backoff,
                                     &yield_after, &park_after)
        || cl_check_name(type, name) < 0) {
        return NULL;
    }
    uint32_t yields = UINT32_MAX, parks = UINT32_MAX;
    if (cl_rounds(yield_after, "yield_after", &yields) < 0
        || cl_rounds(park_after, "park_after", &parks) < 0) {
        return NULL;
    }
    cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
    if (lock != NULL) {
        cl_lock_init(lock, CL_KIND_SPIN, name);
        lock->backoff = (uint8_t)backoff;
        lock->yield_after = yields;
        lock->park_after = parks;
    }
    return (PyObject *)lock;
}

/* Mutex() and Mutex(name) without building a tuple and a dict; the rest by tp_new. For any kind. */
static inline PyObject *
cl_lock_vectorcall(int kind, PyTypeObject *type, PyObject *const *args, size_t nargsf,
                   PyObject *kwnames)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    int only_name = named == 0
                    || (named == 1 && count == 0
                        && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "name") == 0);
    if (count + named <= 1 && only_name) {
        PyObject *name = count + named == 1 ? args[0] : NULL;
        if (cl_check_name(type, name) < 0) {
            return NULL;
        }
        cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
        if (lock != NULL) {
            cl_lock_init(lock, kind, name);
        }
        return (PyObject *)lock;
    }
    PyObject *result = NULL, *kwargs = NULL, *tuple = PyTuple_New(count);
    if (tuple == NULL || (named > 0 && (kwargs = PyDict_New()) == NULL)) {
        goto done;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(kwnames, i), args[count + i]) < 0) {
            goto done;
        }
    }
    result = type->tp_new(type, tuple, kwargs);
done:
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    return result;
}

static PyObject *
cl_mutex_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return cl_lock_vectorcall(CL_KIND_MUTEX, (PyTypeObject *)type, args, nargsf, kwnames);
}

static PyObject *
cl_spin_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return cl_lock_vectorcall(CL_KIND_SPIN, (PyTypeObject *)type, args, nargsf, kwnames);
}

/* Ends what belongs to the lock and not to the Python object. */
static void
cl_lock_drop(cl_lock *lock)
{
    if (lock->info != NULL) {
        /* release: the counters of the last use are visible to whoever sees the flag */
        atomic_store_explicit(&lock->info->dead, 1, memory_order_release);
        cl_lock_info_release(lock->info);
    }
    Py_XDECREF((PyObject *)lock->site_code);
    Py_XDECREF(lock->name);
    Py_XDECREF(lock->type_name);
    Py_XDECREF((PyObject *)lock->whole);
}

static void
cl_lock_dealloc(PyObject *object)
{
    cl_lock *lock = (cl_lock *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (lock->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    cl_lock_drop(lock);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
cl_lock_repr(PyObject *object)
{
    cl_lock *lock = (cl_lock *)object;
    const char *state =
        cl_lock_is_held(lock) ? "locked" : "unlocked";
    const char *type = Py_TYPE(object)->tp_name;
    return lock->name == NULL || lock->label != CL_LABEL_TYPE
               ? PyUnicode_FromFormat("<%s %s object at %p>", state, type, object)
               : PyUnicode_FromFormat("<%s %s object %R at %p>", state, type, lock->name, object);
}

static PyObject *
cl_lock_acquire_method(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int blocking;
    uint64_t deadline;
    if (cl_lock_parse_acquire(args, count, kwnames, &blocking, &deadline) < 0) {
        return NULL;
    }
    int result = cl_lock_acquire((cl_lock *)object, blocking, deadline);
    return result < 0 ? NULL : PyBool_FromLong(result);
}

/* __enter__ takes what acquire() takes, as the original does. */
static PyObject *
cl_lock_enter(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (__builtin_expect(count != 0 || kwnames != NULL, 0)) {
        return cl_lock_acquire_method(object, args, count, kwnames);
    }
    return cl_lock_acquire((cl_lock *)object, CL_INTERRUPTIBLE, CL_FOREVER) < 0 ? NULL : Py_NewRef(Py_True);
}

static PyObject *
cl_lock_release_method(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (cl_lock_release((cl_lock *)object) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_lock_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    return cl_lock_release_method(object, NULL);
}

static PyObject *
cl_lock_locked(PyObject *object, PyObject *unused)
{
    (void)unused;
    int is_held = cl_lock_is_held((cl_lock *)object);
    cl_lock_looked_at((cl_lock *)object, is_held);
    return PyBool_FromLong(is_held);
}

/* In a forked child: free, without waiters, whoever held it. */
static PyObject *
cl_lock_at_fork_reinit(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_lock *lock = (cl_lock *)object;
    atomic_store_explicit(&lock->waiters, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->gave_up, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->hold_epoch, 0, memory_order_relaxed);
    cl_lock_reset(lock);
    Py_RETURN_NONE;
}

static PyObject *
cl_lock_get_name(PyObject *object, void *unused)
{
    (void)unused;
    cl_lock *lock = (cl_lock *)object;
    return Py_NewRef(lock->name == NULL ? Py_None : lock->name);
}

#endif
