/* The uncontended paths of semaphores that threads take permits of; all else is in Python
 * (capture/patches/thread_permits.py).
 */
#ifndef CL_THREAD_PERMITS_H
#define CL_THREAD_PERMITS_H

#include "permits.h"

static PyObject *cl_name_end, *cl_name_wake; /* kept */

/* The arguments: a class of permits and something that has them. 0: not recorded; -1: an exception; else a
 * reference to the permits. */
static inline int
cl_thread_permits(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t wanted, cl_permits **permits)
{
    if (nargs != wanted) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arguments");
        return -1;
    }
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0) {
        return 0;
    }
    *permits = cl_permits_find(args[0], args[1]);
    if (*permits == NULL) {
        return -1;
    }
    if ((*permits)->silent) {
        Py_CLEAR(*permits);
        return 0;
    }
    return 1;
}

/* attempted(cls, thing, outcome): this thread's attempt to get a permit has ended. */
static PyObject *
cl_attempted(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_permits *permits;
    int recorded = cl_thread_permits(args, nargs, 3, &permits);
    if (recorded <= 0) {
        return recorded < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *done = Py_NewRef(Py_None);
    if (PyLong_AsLong(args[2]) == CL_ACQUIRED && cl_permits_waiting(permits) == 0) {
        cl_permits_add(permits, cl_recording_thread(), NULL, 0, 0, 1);
    }
    else {
        Py_SETREF(done, PyObject_CallMethodOneArg((PyObject *)permits, cl_name_end, args[2]));
    }
    Py_DECREF((PyObject *)permits);
    return done;
}

/* giving(cls, thing): this thread is about to give permits back; the time, 0 if that is not recorded. */
static PyObject *
cl_giving(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_permits *permits;
    int recorded = cl_thread_permits(args, nargs, 2, &permits);
    if (recorded <= 0) {
        return recorded < 0 ? NULL : PyLong_FromLong(0);
    }
    uint64_t now = cl_now() | 1u;
    PyObject *done = cl_permits_waiting(permits) == 0
                         ? Py_NewRef(Py_None)
                         : PyObject_CallMethodNoArgs((PyObject *)permits, cl_name_wake);
    Py_DECREF((PyObject *)permits);
    Py_XDECREF(done);
    return done == NULL ? NULL : PyLong_FromUnsignedLongLong(now);
}

/* given(cls, thing, end_ns, count): it has given that many back, at end_ns. */
static PyObject *
cl_given(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_permits *permits;
    int recorded = cl_thread_permits(args, nargs, 4, &permits);
    if (recorded <= 0) {
        return recorded < 0 ? NULL : Py_NewRef(Py_None);
    }
    unsigned long long end_ns = PyLong_AsUnsignedLongLong(args[2]);
    Py_ssize_t given = PyLong_AsSsize_t(args[3]);
    cl_thread *thread = cl_recording_thread();
    while (!PyErr_Occurred() && given-- > 0 && permits->count > 0) {
        cl_permits_remove(permits, thread, 0, end_ns);
    }
    Py_DECREF((PyObject *)permits);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static int
cl_thread_permits_ready(void)
{
    cl_name_end = PyUnicode_InternFromString("end");
    cl_name_wake = PyUnicode_InternFromString("wake");
    return cl_name_end == NULL || cl_name_wake == NULL ? -1 : 0;
}

#define CL_THREAD_PERMITS_METHODS \
    {"attempted", (PyCFunction)(void (*)(void))cl_attempted, METH_FASTCALL, \
     "attempted(cls, thing, outcome)\n--\n\nThis thread's attempt to get a permit has ended."}, \
    {"giving", (PyCFunction)(void (*)(void))cl_giving, METH_FASTCALL, \
     "giving(cls, thing)\n--\n\nThis thread is about to give permits back; when, 0 if not recorded."}, \
    {"given", (PyCFunction)(void (*)(void))cl_given, METH_FASTCALL, \
     "given(cls, thing, end_ns, count)\n--\n\nIt has given that many back."}

#endif
