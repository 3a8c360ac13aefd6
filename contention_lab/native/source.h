/* A Source: something threads wait for that has no lock of ours inside (Thread.join, Future.result). It has
 * a place in the lock table and the methods of coordination.h, which also apply to our locks.
 */
#ifndef CL_SOURCE_H
#define CL_SOURCE_H

#include "coordination.h"
#include "rlock.h"

#define CL_LOCK_TYPES 12

static PyTypeObject *cl_lock_types[CL_LOCK_TYPES]; /* kept; by these our objects are recognised */

/* The object as a lock or Source of ours, or NULL (no exception). */
static cl_lock *
cl_as_ours(PyObject *object)
{
    for (int i = 0; i < CL_LOCK_TYPES; i++) {
        if (cl_lock_types[i] != NULL && PyObject_TypeCheck(object, cl_lock_types[i])) {
            return (cl_lock *)object;
        }
    }
    return NULL;
}

static PyObject *
cl_source_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"type_name", "name", "late", NULL};
    PyObject *type_name, *name = NULL;
    int late = 0; /* not made now, only seen for the first time */
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|Op:Source", keywords, &type_name, &name, &late)
        || cl_check_name(type, name) < 0) {
        return NULL;
    }
    cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
    if (lock != NULL) {
        cl_lock_init(lock, CL_KIND_MUTEX, name);
        lock->type_name = Py_NewRef(type_name);
        if (late) { /* where it was made is not known; what stands there is who used it first */
            Py_CLEAR(lock->site_code);
            lock->via = NULL;
        }
    }
    return (PyObject *)lock;
}

static PyObject *
cl_wait_begin(PyObject *module, PyObject *object)
{
    (void)module;
    cl_lock *lock = cl_as_ours(object);
    return PyLong_FromUnsignedLong(
        lock == NULL ? 0 : cl_coordination_begin(lock, CL_COORDINATION, 0, 0, 0, 0));
}

/* thread_over(native_id): its Python code has ended. */
static PyObject *
cl_thread_over(PyObject *module, PyObject *native_id)
{
    (void)module;
    unsigned long number = PyLong_AsUnsignedLong(native_id);
    if (number == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    cl_slot_over((uint32_t)number, cl_now());
    Py_RETURN_NONE;
}

/* name_in_trace(lock): the trace says what it is, though nothing may happen to it here. */
static PyObject *
cl_name_in_trace(PyObject *module, PyObject *object)
{
    (void)module;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_lock *lock = cl_as_ours(object);
    cl_thread *thread = epoch == 0 || lock == NULL ? NULL : cl_thread_get(epoch);
    cl_lock_info *info = thread == NULL ? NULL : cl_lock_register(lock, thread->epoch);
    if (info != NULL) {
        cl_lock_info_release(info);
    }
    Py_RETURN_NONE;
}

/* wait_permit(source, holder, holder_site, waiters): the calling thread begins to wait for a permit. */
static PyObject *
cl_wait_permit(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    unsigned int holder, holder_site, waiters;
    if (!PyArg_ParseTuple(args, "OIII:wait_permit", &object, &holder, &holder_site, &waiters)) {
        return NULL;
    }
    cl_lock *lock = cl_as_ours(object);
    return PyLong_FromUnsignedLong(
        lock == NULL ? 0 : cl_coordination_begin(lock, CL_CONTENTION, 0, holder, holder_site, waiters));
}

/* A lock that has not been used goes by the entry of `whole` (NULL: it is not recorded at all), or has an entry
 * of its own of which that of `whole` is the parent. */
static void
cl_lock_belongs(cl_lock *lock, cl_lock *whole, int shares_entry)
{
    if (lock != whole && (lock->whole == NULL || whole == NULL) && lock->info == NULL) {
        Py_XSETREF(lock->whole, (cl_lock *)Py_XNewRef((PyObject *)whole));
        lock->shares_entry = shares_entry;
        if (shares_entry) {
            lock->id = whole == NULL ? 0 : whole->id;
        }
    }
}

/* A Source of something that was met late was made where the lock inside was made, if that is known. */
static void
cl_lock_made_with(cl_lock *whole, const cl_lock *part)
{
    if (whole->type_name != NULL && whole->site_code == NULL && whole->info == NULL && part->site_code != NULL) {
        whole->site_code = (PyCodeObject *)Py_NewRef((PyObject *)part->site_code);
        whole->site_lasti = part->site_lasti;
    }
}

/* same_as(lock, source) and part_of(lock, source): a lock that is not ours stays what it is. */
static PyObject *
cl_belongs(PyObject *args, int shares_entry)
{
    PyObject *object, *other;
    if (!PyArg_ParseTuple(args, "OO", &object, &other)) {
        return NULL;
    }
    cl_lock *lock = cl_as_ours(object);
    cl_lock *whole = other == Py_None ? NULL : cl_as_ours(other);
    if ((whole == NULL && !(shares_entry && other == Py_None)) || (whole != NULL && whole->whole != NULL)) {
        PyErr_SetString(PyExc_TypeError, "a lock can belong to a Source or a whole lock of ours");
        return NULL;
    }
    if (lock != NULL) {
        if (whole != NULL && !shares_entry) {
            cl_lock_made_with(whole, lock);
        }
        cl_lock_belongs(lock, whole, shares_entry);
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_same_as(PyObject *module, PyObject *args)
{
    (void)module;
    return cl_belongs(args, 1);
}

static PyObject *
cl_part_of(PyObject *module, PyObject *args)
{
    (void)module;
    return cl_belongs(args, 0);
}

static PyObject *
cl_wait_end(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 && count != 4) {
        PyErr_SetString(PyExc_TypeError, "wait_end() takes a lock, a token, an outcome and a Source");
        return NULL;
    }
    cl_lock *lock = cl_as_ours(args[0]);
    cl_lock *woken = count == 4 ? cl_as_ours(args[3]) : lock;
    unsigned long token = PyLong_AsUnsignedLong(args[1]);
    long outcome = PyLong_AsLong(args[2]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (lock != NULL && woken != NULL && outcome >= CL_ACQUIRED && outcome <= CL_OPEN) {
        cl_coordination_end(lock, (unsigned)token, (int)outcome, woken);
    }
    Py_RETURN_NONE;
}

/* wait_stop(lock): the coordination of this thread on it ends here, its outcome comes later. */
static PyObject *
cl_wait_stop(PyObject *module, PyObject *object)
{
    (void)module;
    cl_lock *lock = cl_as_ours(object);
    cl_thread *thread = cl_current;
    if (lock != NULL && thread != NULL && thread->coordinating != 0) {
        cl_coordination_stop(thread, lock->id);
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_wake(PyObject *module, PyObject *object)
{
    (void)module;
    cl_lock *lock = cl_as_ours(object);
    if (lock != NULL) {
        cl_coordination_wake(lock);
    }
    Py_RETURN_NONE;
}

/* watch(source, begins): a task waits on a condition of this lock, or has ceased to; see watch.h. */
static PyObject *
cl_source_watch(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_lock *lock = nargs == 2 ? cl_as_ours(args[0]) : NULL;
    if (lock == NULL) {
        PyErr_SetString(PyExc_TypeError, "watch() takes a lock of ours and a flag");
        return NULL;
    }
    if (args[1] == Py_True) {
        cl_watch_begin(lock);
    }
    else {
        cl_watch_end(lock);
    }
    Py_RETURN_NONE;
}

static PyType_Slot cl_source_slots[] = {
    {Py_tp_doc, "Source(type_name, name=None, late=False)\n--\n\n"
                "Something threads wait for, without a lock inside. late: it was made earlier."},
    {Py_tp_new, cl_source_new},
    {Py_tp_dealloc, cl_lock_dealloc},
    {0, NULL},
};

static PyType_Spec cl_source_spec = {
    .name = "contention_lab.native._core.Source",
    .basicsize = sizeof(cl_lock),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = cl_source_slots,
};

#endif
