/* What C code there is to put around which function of the standard library, and how Python code does that
 * (capture/patches/around.py). Another one is a line here.
 */
#ifndef CL_AROUND_TABLE_H
#define CL_AROUND_TABLE_H

#include "around_pair.h"
#include "condition.h"
#include "pool.h"
#include "process_lock.h"
#include "semaphore.h"

static const cl_around cl_around_table[] = {
    CL_CONDITION_AROUNDS,
    CL_SEMAPHORE_AROUNDS,
    CL_POOL_AROUNDS,
    {NULL, NULL, NULL},
};

static vectorcallfunc
cl_around_find(PyObject *name, PyObject *context)
{
    for (const cl_around *around = cl_around_table; around->name != NULL; around++) {
        if (PyUnicode_CompareWithASCIIString(name, around->name) == 0) {
            if (around->context != NULL) {
                Py_XSETREF(*around->context, Py_NewRef(context)); /* the same each time */
            }
            return around->call;
        }
    }
    return NULL;
}

/* put_around(owner, name, function, what, context): `what` is a name in the table, or a pair of callables. */
static PyObject *
cl_put_around(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *owner, *function, *what, *context, *before = NULL, *after = NULL;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!sOOO:put_around", &PyType_Type, &owner, &name, &function, &what, &context)) {
        return NULL;
    }
    vectorcallfunc call = PyUnicode_Check(what) ? cl_around_find(what, context) : cl_around_pair_call;
    if (call == NULL) {
        return PyErr_Format(PyExc_ValueError, "there is nothing to put around %R", what);
    }
    if (call == cl_around_pair_call
        && (!PyArg_ParseTuple(what, "OO:put_around", &before, &after)
            || !cl_around_pair_keep(function, before, after))) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    return PyBool_FromLong(cl_around_put(function, (PyTypeObject *)owner, name, call));
}

/* remove_around(owner, function): nothing is around it any more. */
static PyObject *
cl_remove_around(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *owner, *function;
    if (!PyArg_ParseTuple(args, "O!O:remove_around", &PyType_Type, &owner, &function)) {
        return NULL;
    }
    if (PyObject_TypeCheck(function, &PyFunction_Type)) {
        cl_around_remove((PyTypeObject *)owner, function);
    }
    Py_RETURN_NONE;
}

#define CL_AROUND_METHODS \
    {"put_around", cl_put_around, METH_VARARGS, \
     "put_around(owner, name, function, what, context)\n--\n\n" \
     "Put recording code around a method: what is called so, or (before, after).\n" \
     "False if it is no function of Python's, or has something around it already."}, \
    {"remove_around", cl_remove_around, METH_VARARGS, \
     "remove_around(owner, function)\n--\n\nNothing is around it any more."}

#endif
