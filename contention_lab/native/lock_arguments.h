/* The arguments of acquire(), as the CPython that runs takes them, and its own errors for what it does not. */
#ifndef CL_LOCK_ARGUMENTS_H
#define CL_LOCK_ARGUMENTS_H

#include <limits.h>
#include <math.h>

#include "lock_record.h"

/* threading.TIMEOUT_MAX of CPython on platforms with 64-bit time: PY_TIMEOUT_MAX microseconds. */
#define CL_TIMEOUT_MAX_NS ((double)PY_TIMEOUT_MAX * 1e3)

#if PY_VERSION_HEX >= 0x030D0000
#  define CL_TIME_TYPE "PyTime_t"
#  define CL_TIMEOUT_SIGN "a non-negative number"
#else
#  define CL_TIME_TYPE "_PyTime_t"
#  define CL_TIMEOUT_SIGN "positive"
#endif

/* A timeout in seconds as a CLOCK_MONOTONIC deadline. -1: an exception. */
static int
cl_deadline(PyObject *timeout, int blocking, uint64_t *deadline)
{
    double ns;
    if (PyFloat_Check(timeout)) {
        double seconds = PyFloat_AS_DOUBLE(timeout);
        if (isnan(seconds)) {
            PyErr_SetString(PyExc_ValueError, "Invalid value NaN (not a number)");
            return -1;
        }
        ns = seconds * 1e9;
        ns = ns < 0 ? floor(ns) : ceil(ns); /* away from 0 */
        if (!(ns >= -0x1p63 && ns < 0x1p63)) {
            PyErr_SetString(PyExc_OverflowError, "timestamp out of range for platform time_t");
            return -1;
        }
    }
    else {
        long long seconds = PyLong_AsLongLong(timeout);
        int failed = seconds == -1 && PyErr_Occurred();
        if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return -1;
        }
        if (failed || seconds > LLONG_MAX / 1000000000 || seconds < LLONG_MIN / 1000000000) {
            PyErr_SetString(PyExc_OverflowError, "timestamp too large to convert to C " CL_TIME_TYPE);
            return -1;
        }
        ns = (double)seconds * 1e9;
    }
    *deadline = CL_FOREVER;
    if (ns == -1e9) {
        return 0;
    }
    if (!blocking) {
        PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
        return -1;
    }
    if (ns < 0) {
        PyErr_SetString(PyExc_ValueError, "timeout value must be " CL_TIMEOUT_SIGN);
        return -1;
    }
    if (ns > CL_TIMEOUT_MAX_NS) {
        PyErr_SetString(PyExc_OverflowError, "timeout value is too large");
        return -1;
    }
    *deadline = cl_monotonic_ns() + (uint64_t)ns;
    return 0;
}

/* Whether to block: an int until 3.11, the truth of any object since. -1: an exception. */
static int
cl_is_blocking(PyObject *value)
{
    if (value == NULL || value == Py_True) {
        return 1;
    }
    if (value == Py_False) {
        return 0;
    }
#if PY_VERSION_HEX >= 0x030C0000
    return PyObject_IsTrue(value);
#else
    long number = PyLong_AsLong(value);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (number > INT_MAX || number < INT_MIN) {
        PyErr_SetString(PyExc_OverflowError, number > 0 ? "signed integer is greater than maximum"
                                                        : "signed integer is less than minimum");
        return -1;
    }
    return number != 0;
#endif
}

/* The arguments of acquire(blocking=True, timeout=-1). A timeout of 0 is a try. -1: an exception. */
static int
cl_lock_parse_acquire(PyObject *const *args, Py_ssize_t count, PyObject *kwnames, int *blocking,
                      uint64_t *deadline)
{
    PyObject *values[2] = {NULL, NULL};
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    if (count + named > 2) {
        PyErr_Format(PyExc_TypeError, "acquire() takes at most 2 arguments (%zd given)", count + named);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        values[i] = args[i];
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *key = PyTuple_GET_ITEM(kwnames, i);
        int which = PyUnicode_CompareWithASCIIString(key, "blocking") == 0  ? 0
                    : PyUnicode_CompareWithASCIIString(key, "timeout") == 0 ? 1
                                                                            : -1;
        if (which < 0) {
#if PY_VERSION_HEX >= 0x030D0000
            PyErr_Format(PyExc_TypeError, "acquire() got an unexpected keyword argument '%U'", key);
#else
            PyErr_Format(PyExc_TypeError, "'%U' is an invalid keyword argument for acquire()", key);
#endif
            return -1;
        }
        if (values[which] != NULL) {
            PyErr_Format(PyExc_TypeError,
                         "argument for acquire() given by name ('%U') and position (%d)", key, which + 1);
            return -1;
        }
        values[which] = args[count + i];
    }
    int truth = cl_is_blocking(values[0]);
    if (truth < 0) {
        return -1;
    }
    *blocking = truth ? CL_INTERRUPTIBLE : CL_TRY;
    *deadline = CL_FOREVER;
    if (values[1] != NULL) {
        if (cl_deadline(values[1], truth, deadline) < 0) {
            return -1;
        }
        if (*deadline != CL_FOREVER && PyObject_IsTrue(values[1]) == 0) {
            *blocking = CL_TRY;
        }
    }
    return 0;
}

#endif
