/* What of ours fails while it is called for the program: a mistake is not the program's, an interrupt is.
 *
 * An interrupt, or whatever else is no Exception, is what the program's signal handler raised while Python code
 * of ours ran. It goes on to the program, and its traceback begins where that code was called.
 */
#ifndef CL_CONTAIN_H
#define CL_CONTAIN_H

#include "stacks.h"

static int
cl_contain_is_ours(const PyTracebackObject *place)
{
    PyCodeObject *code = PyFrame_GetCode(place->tb_frame);
    int is_ours = cl_code_owner(code) == CL_HIDDEN;
    Py_DECREF(code);
    return is_ours;
}

/* -1: the exception is the program's, and set. 0: it was ours; it is reported as unraisable, of `callable`, or
 * forgotten if that is NULL. */
static int
cl_contain(PyObject *callable)
{
    if (PyErr_ExceptionMatches(PyExc_Exception)) {
        if (callable != NULL) {
            PyErr_WriteUnraisable(callable);
        }
        PyErr_Clear();
        return 0;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    while (traceback != NULL && PyTraceBack_Check(traceback)
           && cl_contain_is_ours((PyTracebackObject *)traceback)) {
        Py_SETREF(traceback, Py_XNewRef((PyObject *)((PyTracebackObject *)traceback)->tb_next));
    }
    PyErr_Restore(type, value, traceback);
    return -1;
}

#endif
