/* threading.Condition, and with it Event, Barrier, Queue and Future, which wait on one.
 *
 * Waiting for a notify is coordination; taking the lock again afterwards is contention, which the lock records
 * itself. Whoever notifies goes down as the one who woke: at the lock, for the condition that first waits by
 * way of it, which has it for itself as a rule; other conditions of the same lock, and those of a lock that is
 * not ours, have a record of their own.
 *
 * A condition inside a semaphore is not recorded: one operation of the program is one event.
 */
#ifndef CL_CONDITION_H
#define CL_CONDITION_H

#include "around.h"
#include "contain.h"
#include "permits.h"

static struct {
    PyObject *records;               /* the class of the records; kept */
    PyObject *inner;                 /* a dict: see record_conditions() */
    PyObject *lock, *waiters, *owned; /* names of attributes; kept */
} cl_conditions;

static int
cl_conditions_ready(void)
{
    cl_conditions.lock = PyUnicode_InternFromString("_lock");
    cl_conditions.waiters = PyUnicode_InternFromString("_waiters");
    cl_conditions.owned = PyUnicode_InternFromString("_is_owned");
    return cl_conditions.lock == NULL || cl_conditions.waiters == NULL || cl_conditions.owned == NULL ? -1 : 0;
}

/* What is recorded by: a lock of ours or a Source, and what tells who woke. */
typedef struct {
    PyObject *lock_object; /* owned: the condition's lock */
    cl_permits *record;    /* owned; NULL: the lock serves */
    cl_lock *lock;         /* NULL: it is not ours */
    cl_lock *source, *woken;
} cl_condition;

static void
cl_condition_done(cl_condition *condition)
{
    Py_CLEAR(condition->lock_object);
    Py_CLEAR(condition->record);
}

/* Looks at the lock of a condition. -1: an exception. */
static inline int
cl_condition_look(PyObject *self, cl_condition *condition)
{
    memset(condition, 0, sizeof *condition);
    condition->lock_object = PyObject_GetAttr(self, cl_conditions.lock);
    if (condition->lock_object == NULL) {
        return -1;
    }
    condition->lock = cl_as_ours(condition->lock_object);
    return 0;
}

/* Decides what the condition is recorded by. -1: an exception. */
static inline int
cl_condition_find(PyObject *self, cl_condition *condition)
{
    uintptr_t known = 0;
    cl_lock *lock = condition->lock;
    if (lock != NULL
        && (atomic_load_explicit(&lock->condition, memory_order_relaxed) == (uintptr_t)self
            || atomic_compare_exchange_strong_explicit(&lock->condition, &known, (uintptr_t)self,
                                                       memory_order_relaxed, memory_order_relaxed))) {
        condition->source = condition->woken = lock;
        return 0;
    }
    condition->record = cl_permits_find(cl_conditions.records, self);
    if (condition->record == NULL) {
        return -1;
    }
    condition->woken = cl_permits_source(condition->record);
    condition->source = lock != NULL ? lock : condition->woken;
    return 0;
}

/* Whether the calling thread has the condition's lock, as the condition would say. -1: an exception. */
static int
cl_condition_is_owned(PyObject *self, const cl_condition *condition)
{
    if (Py_IS_TYPE(condition->lock_object, cl_own_types[1])) {
        return cl_rlock_is_mine((cl_rlock *)condition->lock);
    }
    if (Py_IS_TYPE(condition->lock_object, cl_own_types[0])) {
        return atomic_load_explicit(&condition->lock->state, memory_order_relaxed) != CL_FREE;
    }
    PyObject *owned = PyObject_CallMethodNoArgs(self, cl_conditions.owned);
    int is_owned = owned == NULL ? -1 : PyObject_IsTrue(owned);
    Py_XDECREF(owned);
    return is_owned;
}

/* What to call before a condition waits that is inside something else: a new reference, or NULL. */
static PyObject *
cl_condition_outer(PyObject *self, const cl_condition *condition)
{
    const cl_lock *lock = condition->lock;
    if (cl_conditions.inner == NULL || (lock != NULL && (lock->whole == NULL || lock->shares_entry))) {
        return NULL;
    }
    PyObject *key = PyLong_FromVoidPtr(self);
    PyObject *outer = key == NULL ? NULL : cl_dict_get(cl_conditions.inner, key);
    Py_XDECREF(key);
    return outer;
}

/* Whether wait() with these arguments waits at all. */
static int
cl_condition_blocks(PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t given = count + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (given != 2 || args[1] == Py_None) {
        return 1;
    }
    double timeout = PyFloat_AsDouble(args[1]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
    }
    return timeout > 0;
}

static PyObject *
cl_condition_wait(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0 || count == 0) {
        return cl_around_original(function, args, nargsf, names);
    }
    cl_condition condition;
    PyObject *self = args[0];
    int owned = 0, failed = cl_condition_look(self, &condition) < 0;
    PyObject *outer = failed ? NULL : cl_condition_outer(self, &condition);
    if (outer != NULL) {
        int blocks = cl_condition_blocks(args, count, names);
        PyObject *done = blocks ? PyObject_CallNoArgs(outer) : Py_NewRef(outer);
        failed = done == NULL;
        Py_XDECREF(done);
        Py_DECREF(outer);
    }
    else if (!failed && !(condition.lock != NULL && condition.lock->id == 0)) {
        owned = cl_condition_is_owned(self, &condition);
        failed = owned < 0 || (owned > 0 && cl_condition_find(self, &condition) < 0);
    }
    if (failed || owned <= 0) {
        cl_condition_done(&condition);
        return failed && cl_contain(NULL) < 0 ? NULL : cl_around_original(function, args, nargsf, names);
    }
    unsigned token = cl_coordination_begin(condition.source, CL_COORDINATION, 0, 0, 0, 0);
    PyObject *result = cl_around_original(function, args, nargsf, names);
    int outcome = result == NULL ? CL_INTERRUPTED : PyObject_IsTrue(result) > 0 ? CL_ACQUIRED : CL_TIMED_OUT;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    cl_coordination_end(condition.source, token, outcome, condition.woken);
    cl_condition_done(&condition);
    PyErr_Restore(type, value, traceback);
    return result;
}

/* Notes who is about to wake waiters of a condition, if there are any. -1: an exception. */
static int
cl_condition_wake(PyObject *self)
{
    PyObject *waiters = PyObject_GetAttr(self, cl_conditions.waiters);
    int waited_for = waiters == NULL ? -1 : PyObject_IsTrue(waiters);
    Py_XDECREF(waiters);
    cl_condition condition;
    if (waited_for <= 0 || cl_condition_look(self, &condition) < 0) {
        return waited_for == 0 ? 0 : -1;
    }
    int is_inner = condition.lock != NULL && condition.lock->whole != NULL && !condition.lock->shares_entry;
    int found = is_inner ? 0 : cl_condition_find(self, &condition);
    if (condition.woken != NULL) {
        cl_coordination_wake(condition.woken);
    }
    cl_condition_done(&condition);
    return found;
}

static PyObject *
cl_condition_notify(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0 && PyVectorcall_NARGS(nargsf) != 0
        && cl_condition_wake(args[0]) < 0 && cl_contain(NULL) < 0) {
        return NULL;
    }
    return cl_around_original(function, args, nargsf, names);
}

/* Condition._is_owned() tries to acquire a lock that does not say by itself whether it is held: for ours, a
 * look is enough, and no try of the program's. */
static PyObject *
cl_condition_owned(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (PyVectorcall_NARGS(nargsf) == 1 && names == NULL) {
        cl_condition condition;
        int held = -1;
        if (cl_condition_look(args[0], &condition) < 0) {
            PyErr_Clear();
        }
        else if (Py_IS_TYPE(condition.lock_object, cl_own_types[0])
                 || Py_IS_TYPE(condition.lock_object, cl_lock_types[2])) {
            held = atomic_load_explicit(&condition.lock->state, memory_order_relaxed) != CL_FREE;
        }
        cl_condition_done(&condition);
        if (held >= 0) {
            return PyBool_FromLong(held);
        }
    }
    return cl_around_original(function, args, nargsf, names);
}

/* record_conditions(inner): by the id of a condition inside something else, what to call before it waits. */
static PyObject *
cl_record_conditions(PyObject *module, PyObject *inner)
{
    (void)module;
    if (!PyDict_Check(inner)) {
        PyErr_SetString(PyExc_TypeError, "record_conditions() takes a dict");
        return NULL;
    }
    Py_XSETREF(cl_conditions.inner, Py_NewRef(inner)); /* the same each time */
    Py_RETURN_NONE;
}

#define CL_CONDITION_METHODS \
    {"record_conditions", cl_record_conditions, METH_O, \
     "record_conditions(inner)\n--\n\n" \
     "By the id of a condition inside something else, what to call before it waits."}

#define CL_CONDITION_AROUNDS \
    {"Condition.wait", cl_condition_wait, &cl_conditions.records}, \
    {"Condition.notify", cl_condition_notify, &cl_conditions.records}, \
    {"Condition._is_owned", cl_condition_owned, &cl_conditions.records}

#endif
