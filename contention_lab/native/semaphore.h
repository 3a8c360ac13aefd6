/* threading.Semaphore and BoundedSemaphore: one acquire() is one event, and each permit a hold of its own.
 *
 * The uncontended paths are here. An attempt that waits is told to the record by the condition inside
 * (condition.h), and all of that is in Python (capture/patches/thread_permits.py).
 */
#ifndef CL_SEMAPHORE_H
#define CL_SEMAPHORE_H

#include "condition.h"

static PyObject *cl_semaphore_records;         /* the class of the permits; kept */
static PyObject *cl_name_end, *cl_name_wake;   /* kept */

static int
cl_semaphores_ready(void)
{
    cl_name_end = PyUnicode_InternFromString("end");
    cl_name_wake = PyUnicode_InternFromString("wake");
    return cl_name_end == NULL || cl_name_wake == NULL ? -1 : 0;
}

/* The permits of a semaphore, a new reference. NULL: not recorded, or an exception that is to be raised. */
static inline cl_permits *
cl_semaphore_permits(PyObject *const *args, size_t nargsf)
{
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0 || PyVectorcall_NARGS(nargsf) == 0) {
        return NULL;
    }
    cl_permits *permits = cl_permits_find(cl_semaphore_records, args[0]);
    if (permits == NULL) {
        (void)cl_contain(NULL);
    }
    else if (permits->silent) {
        Py_CLEAR(permits);
    }
    return permits;
}

/* Notes that this thread's attempt to get a permit has ended. -1: an exception that is to be raised. */
static int
cl_semaphore_note(cl_permits *permits, int outcome)
{
    if (outcome == CL_ACQUIRED && cl_permits_waiting(permits) == 0) {
        cl_permits_add(permits, cl_recording_thread(), NULL, 0, 0, 1);
        return 0;
    }
    PyObject *how = PyLong_FromLong(outcome);
    PyObject *done = how == NULL ? NULL : PyObject_CallMethodOneArg((PyObject *)permits, cl_name_end, how);
    int contained = done == NULL ? cl_contain((PyObject *)permits) : 0;
    Py_XDECREF(done);
    Py_XDECREF(how);
    return contained;
}

/* This thread's attempt has ended with `taken`, which is taken over. A new reference to what it is for the program. */
static PyObject *
cl_semaphore_attempted(cl_permits *permits, PyObject *taken)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (permits->beside.epoch == atomic_load_explicit(&cl_epoch, memory_order_relaxed)) {
        int outcome = taken == NULL ? CL_INTERRUPTED : PyObject_IsTrue(taken) > 0 ? CL_ACQUIRED : CL_TIMED_OUT;
        if (cl_semaphore_note(permits, outcome) < 0 && type == NULL) {
            Py_DECREF(taken);
            return NULL;
        }
    }
    PyErr_Restore(type, value, traceback);
    return taken;
}

static PyObject *
cl_semaphore_acquire(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    cl_permits *permits = cl_semaphore_permits(args, nargsf);
    if (permits == NULL) {
        return PyErr_Occurred() ? NULL : cl_around_original(function, args, nargsf, names);
    }
    PyObject *taken = cl_semaphore_attempted(permits, cl_around_original(function, args, nargsf, names));
    Py_DECREF((PyObject *)permits);
    return taken;
}

/* How many permits release() gives back with these arguments, which it has accepted. */
static Py_ssize_t
cl_semaphore_given(PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t all = PyVectorcall_NARGS(nargsf) + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    Py_ssize_t given = all < 2 ? 1 : PyNumber_AsSsize_t(args[1], NULL);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        given = 1;
    }
    return given;
}

static PyObject *
cl_semaphore_release(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    cl_permits *permits = cl_semaphore_permits(args, nargsf);
    if (permits == NULL) {
        return PyErr_Occurred() ? NULL : cl_around_original(function, args, nargsf, names);
    }
    uint64_t end_ns = cl_now() | 1u;
    if (cl_permits_waiting(permits) != 0) {
        PyObject *done = PyObject_CallMethodNoArgs((PyObject *)permits, cl_name_wake);
        if (done == NULL && cl_contain(NULL) < 0) {
            Py_DECREF((PyObject *)permits);
            return NULL;
        }
        Py_XDECREF(done);
    }
    PyObject *result = cl_around_original(function, args, nargsf, names);
    if (result != NULL && permits->beside.epoch == atomic_load_explicit(&cl_epoch, memory_order_relaxed)) {
        cl_thread *thread = cl_recording_thread();
        Py_ssize_t given = cl_semaphore_given(args, nargsf, names);
        while (given-- > 0 && permits->count > 0) {
            cl_permits_remove(permits, thread, 0, end_ns);
        }
    }
    Py_DECREF((PyObject *)permits);
    return result;
}

#define CL_SEMAPHORE_AROUNDS \
    {"Semaphore.acquire", cl_semaphore_acquire, &cl_semaphore_records}, \
    {"Semaphore.release", cl_semaphore_release, &cl_semaphore_records}

#endif
