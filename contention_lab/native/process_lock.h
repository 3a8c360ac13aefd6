/* multiprocessing's Lock, RLock, Semaphore and BoundedSemaphore.
 *
 * Each is a Python object around one of a C type, `_multiprocessing.SemLock`, whose methods the program has bound
 * to attributes. The table that says what these methods do is changed as long as something is recorded: the type
 * and the bound methods stay the objects that they were, and nothing is on the stack. What this process has of a
 * lock is found by the address of the C object.
 */
#ifndef CL_PROCESS_LOCK_H
#define CL_PROCESS_LOCK_H

#include "semaphore.h"

enum { CL_SEM_ACQUIRE, CL_SEM_ENTER, CL_SEM_RELEASE, CL_SEM_EXIT, CL_SEM_METHODS };

static struct {
    PyMethodDef *method[CL_SEM_METHODS]; /* NULL: not recorded so far */
    PyCFunction original[CL_SEM_METHODS];
    PyObject *permits; /* a dict: by the address of a C object, its permits; kept */
} cl_process_locks;

/* One call of a method. */
typedef struct {
    int method;
    PyObject *self, *const *args;
    Py_ssize_t count;
    PyObject *names;
} cl_sem_call;

static PyObject *
cl_sem_acquire_original(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyCFunction original = cl_process_locks.original[CL_SEM_ACQUIRE];
    return ((_PyCFunctionFastWithKeywords)(void (*)(void))original)(self, args, count, names);
}

static PyObject *
cl_sem_original(const cl_sem_call *call)
{
    PyCFunction original = cl_process_locks.original[call->method];
    if (call->method == CL_SEM_ACQUIRE) {
        return cl_sem_acquire_original(call->self, call->args, call->count, call->names);
    }
    if (call->method == CL_SEM_EXIT) {
        return ((_PyCFunctionFast)(void (*)(void))original)(call->self, call->args, call->count);
    }
    return original(call->self, NULL);
}

/* What is known of the lock, a new reference. NULL: it is not recorded, or an exception is to be raised. */
static cl_permits *
cl_sem_permits(PyObject *self)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0 || PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return NULL;
    }
    PyObject *key = PyLong_FromVoidPtr(self);
    PyObject *record = key == NULL ? NULL : cl_dict_get(cl_process_locks.permits, key);
    Py_XDECREF(key);
    if (record == NULL || !PyObject_TypeCheck(record, cl_permits_type) || ((cl_permits *)record)->silent
        || ((cl_permits *)record)->source == NULL) {
        PyErr_Clear();
        Py_XDECREF(record);
        return NULL;
    }
    if (((cl_permits *)record)->beside.epoch != epoch) {
        PyObject *done = PyObject_CallMethod(record, "forget", NULL);
        if (done == NULL) {
            (void)cl_contain(NULL);
            Py_CLEAR(record);
        }
        Py_XDECREF(done);
    }
    return (cl_permits *)record;
}

/* How often this thread has a lock that nests. -1: an exception. */
static long
cl_sem_depth(PyObject *self)
{
    PyObject *mine = PyObject_CallMethod(self, "_is_mine", NULL);
    int is_mine = mine == NULL ? -1 : PyObject_IsTrue(mine);
    Py_XDECREF(mine);
    PyObject *count = is_mine <= 0 ? NULL : PyObject_CallMethod(self, "_count", NULL);
    long depth = count == NULL ? is_mine : PyLong_AsLong(count);
    Py_XDECREF(count);
    return PyErr_Occurred() ? -1 : depth;
}

/* Whether the call may wait; it does not if that cannot be told from arguments of the usual types. */
static int
cl_sem_may_wait(const cl_sem_call *call)
{
    PyObject *block = Py_True, *timeout = Py_None;
    Py_ssize_t named = call->names == NULL ? 0 : PyTuple_GET_SIZE(call->names);
    if (call->count > 2) {
        return 0;
    }
    block = call->count > 0 ? call->args[0] : block;
    timeout = call->count > 1 ? call->args[1] : timeout;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(call->names, i), *value = call->args[call->count + i];
        if (PyUnicode_CompareWithASCIIString(name, "block") == 0 && call->count < 1) {
            block = value;
        }
        else if (PyUnicode_CompareWithASCIIString(name, "timeout") == 0 && call->count < 2) {
            timeout = value;
        }
        else {
            return 0;
        }
    }
    int positive = timeout == Py_None || (PyFloat_CheckExact(timeout) && PyFloat_AS_DOUBLE(timeout) > 0)
                   || (PyLong_CheckExact(timeout) && PyLong_AsDouble(timeout) > 0);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return block == Py_True && positive;
}

/* Notes how an attempt ended; a new reference to what it is for the program. */
static PyObject *
cl_sem_attempted(cl_permits *permits, PyObject *taken)
{
    if (taken == Py_True && !permits->may_be_signal
        && permits->beside.epoch == atomic_load_explicit(&cl_epoch, memory_order_relaxed)) {
        cl_permits_drop(permits); /* if another process has released it, we have not seen that */
    }
    return cl_semaphore_attempted(permits, taken);
}

/* An attempt of this thread that does not nest: a try first, so that only waits are timed. */
static PyObject *
cl_sem_attempt(const cl_sem_call *call, cl_permits *permits)
{
    static PyObject *const no_wait[] = {Py_False};
    cl_thread *thread = cl_current;
    if (thread != NULL && thread->coordinating != 0) { /* a condition was notified and takes its lock again */
        cl_coordination_stop(thread, cl_permits_source(permits)->id);
    }
    if (!cl_sem_may_wait(call)) {
        return cl_sem_attempted(permits, cl_sem_original(call));
    }
    PyObject *taken = cl_sem_acquire_original(call->self, no_wait, 1, NULL);
    if (taken == NULL) {
        return NULL;
    }
    if (taken == Py_False) {
        PyObject *noted = PyObject_CallMethod((PyObject *)permits, "wait", NULL);
        Py_DECREF(taken);
        if (noted == NULL && cl_contain(NULL) < 0) {
            return NULL;
        }
        Py_XDECREF(noted);
        taken = cl_sem_original(call);
    }
    return cl_sem_attempted(permits, taken);
}

static PyObject *
cl_sem_take(const cl_sem_call *call)
{
    cl_permits *permits = cl_sem_permits(call->self);
    if (permits == NULL) {
        return PyErr_Occurred() ? NULL : cl_sem_original(call);
    }
    long depth = permits->nests ? cl_sem_depth(call->self) : 0;
    if (depth < 0) {
        PyErr_Clear();
    }
    if (depth > 0) {
        cl_thread *thread = cl_recording_thread();
        cl_lock *lock = cl_permits_source(permits);
        cl_block *block = thread == NULL ? NULL : cl_block_get(thread, lock->id, lock, cl_lock_register);
        if (block != NULL) {
            cl_add(&block->value[CL_C_RECURSIONS], 1);
        }
    }
    PyObject *taken = depth != 0 ? cl_sem_original(call) : cl_sem_attempt(call, permits);
    Py_DECREF((PyObject *)permits);
    return taken;
}

static PyObject *
cl_sem_give(const cl_sem_call *call)
{
    cl_permits *permits = cl_sem_permits(call->self);
    if (permits == NULL) {
        return PyErr_Occurred() ? NULL : cl_sem_original(call);
    }
    long depth = permits->nests ? cl_sem_depth(call->self) : 0;
    if (depth < 0) {
        PyErr_Clear();
    }
    uint64_t end_ns = cl_now() | 1u;
    if (depth <= 1 && cl_permits_waiting(permits) != 0) {
        PyObject *done = PyObject_CallMethodNoArgs((PyObject *)permits, cl_name_wake);
        if (done == NULL && cl_contain(NULL) < 0) {
            Py_DECREF((PyObject *)permits);
            return NULL;
        }
        Py_XDECREF(done);
    }
    PyObject *result = cl_sem_original(call);
    if (depth <= 1 && result != NULL
        && permits->beside.epoch == atomic_load_explicit(&cl_epoch, memory_order_relaxed)) {
        cl_permits_remove(permits, cl_recording_thread(), 0, end_ns);
    }
    Py_DECREF((PyObject *)permits);
    return result;
}

static PyObject *
cl_sem_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    cl_sem_call call = {CL_SEM_ACQUIRE, self, args, count, names};
    return cl_sem_take(&call);
}

static PyObject *
cl_sem_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    cl_sem_call call = {CL_SEM_ENTER, self, NULL, 0, NULL};
    return cl_sem_take(&call);
}

static PyObject *
cl_sem_release(PyObject *self, PyObject *unused)
{
    (void)unused;
    cl_sem_call call = {CL_SEM_RELEASE, self, NULL, 0, NULL};
    return cl_sem_give(&call);
}

static PyObject *
cl_sem_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    cl_sem_call call = {CL_SEM_EXIT, self, args, count, NULL};
    return cl_sem_give(&call);
}

static const struct {
    const char *name;
    int flags;
    PyCFunction ours;
} cl_sem_methods[CL_SEM_METHODS] = {
    {"acquire", METH_FASTCALL | METH_KEYWORDS, (PyCFunction)(void (*)(void))cl_sem_acquire},
    {"__enter__", METH_NOARGS, cl_sem_enter},
    {"release", METH_NOARGS, cl_sem_release},
    {"__exit__", METH_FASTCALL, (PyCFunction)(void (*)(void))cl_sem_exit},
};

/* record_process_locks(type, permits): False if the type's methods are not what they are in CPython. */
static PyObject *
cl_record_process_locks(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *permits;
    PyMethodDef *found[CL_SEM_METHODS];
    if (!PyArg_ParseTuple(args, "O!O!:record_process_locks", &PyType_Type, &type, &PyDict_Type, &permits)) {
        return NULL;
    }
    for (int i = 0; i < CL_SEM_METHODS; i++) {
        PyObject *method = PyObject_GetAttrString(type, cl_sem_methods[i].name);
        found[i] = method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type)
                       ? ((PyMethodDescrObject *)method)->d_method
                       : NULL;
        Py_XDECREF(method);
        if (found[i] == NULL || found[i]->ml_flags != cl_sem_methods[i].flags) {
            PyErr_Clear();
            Py_RETURN_FALSE;
        }
    }
    Py_XSETREF(cl_process_locks.permits, Py_NewRef(permits)); /* the same each time */
    for (int i = 0; i < CL_SEM_METHODS; i++) {
        if (found[i]->ml_meth != cl_sem_methods[i].ours) {
            cl_process_locks.original[i] = found[i]->ml_meth;
            cl_process_locks.method[i] = found[i];
            /* release: whoever calls ours finds the original */
            __atomic_store_n(&found[i]->ml_meth, cl_sem_methods[i].ours, __ATOMIC_RELEASE);
        }
    }
    Py_RETURN_TRUE;
}

static PyObject *
cl_leave_process_locks(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (int i = 0; i < CL_SEM_METHODS; i++) {
        if (cl_process_locks.method[i] != NULL) {
            __atomic_store_n(&cl_process_locks.method[i]->ml_meth, cl_process_locks.original[i],
                             __ATOMIC_RELEASE);
        }
    }
    Py_RETURN_NONE;
}

#define CL_PROCESS_LOCK_METHODS \
    {"record_process_locks", cl_record_process_locks, METH_VARARGS, \
     "record_process_locks(type, permits)\n--\n\n" \
     "Record the methods of multiprocessing's locks; by the id of each, its permits.\n" \
     "False if they are not what they are in CPython."}, \
    {"leave_process_locks", cl_leave_process_locks, METH_NOARGS, \
     "leave_process_locks()\n--\n\nThese methods are what they were."}

#endif
