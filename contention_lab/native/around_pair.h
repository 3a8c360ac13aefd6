/* Two Python functions around another one, for what is not called often: see around.h.
 *
 * before(self) is called first, and its result is kept; NULL for before: `self` is, the first argument. Unless
 * that is None, after(kept, result, failed) is called when the function has returned or raised. What goes wrong
 * in these is reported as unraisable and changes nothing.
 */
#ifndef CL_AROUND_PAIR_H
#define CL_AROUND_PAIR_H

#include "around.h"
#include "front.h"
#include "session.h"

#define CL_MOST_PAIRS 64

typedef struct {
    PyObject *function, *before, *after; /* kept for good: somebody may be about to call them */
} cl_around_pair;

static cl_around_pair cl_around_pairs[CL_MOST_PAIRS];
static _Atomic unsigned cl_around_pairs_used; /* grows under the GIL or, without one, cl_intern_mutex */

static cl_around_pair *
cl_around_pair_of(PyObject *function)
{
    /* acquire: the entries that are counted are whole */
    unsigned used = atomic_load_explicit(&cl_around_pairs_used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++) {
        if (cl_around_pairs[i].function == function) {
            return &cl_around_pairs[i];
        }
    }
    return NULL;
}

/* A place for a function's pair; 0 if there is no room. */
static int
cl_around_pair_keep(PyObject *function, PyObject *before, PyObject *after)
{
    pthread_mutex_lock(&cl_intern_mutex);
    int kept = cl_around_pair_of(function) != NULL;
    unsigned used = atomic_load_explicit(&cl_around_pairs_used, memory_order_relaxed);
    if (!kept && used < CL_MOST_PAIRS) {
        cl_around_pairs[used].function = Py_NewRef(function);
        cl_around_pairs[used].before = before == Py_None ? NULL : Py_NewRef(before);
        cl_around_pairs[used].after = Py_NewRef(after);
        /* release: see cl_around_pair_of() */
        atomic_store_explicit(&cl_around_pairs_used, used + 1, memory_order_release);
        kept = 1;
    }
    pthread_mutex_unlock(&cl_intern_mutex);
    return kept;
}

/* A new reference to what the call is for the program: `result`, which is taken over. */
static PyObject *
cl_around_pair_after(cl_around_pair *pair, PyObject *kept, PyObject *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *done = PyObject_CallFunctionObjArgs(pair->after, kept, result == NULL ? Py_None : result,
                                                  result == NULL ? Py_True : Py_False, NULL);
    if (done == NULL && cl_contain(pair->after) < 0 && type == NULL) {
        Py_CLEAR(result);
        return NULL;
    }
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
    return result;
}

static PyObject *
cl_around_pair_call(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    cl_around_pair *pair = cl_around_pair_of(function);
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0 || pair == NULL
        || PyVectorcall_NARGS(nargsf) == 0) {
        return cl_around_original(function, args, nargsf, names);
    }
    PyObject *kept = pair->before == NULL ? Py_NewRef(args[0]) : PyObject_CallOneArg(pair->before, args[0]);
    if (kept == NULL && cl_contain(pair->before) < 0) {
        return NULL;
    }
    PyObject *result = cl_around_original(function, args, nargsf, names);
    if (kept != NULL && kept != Py_None) {
        result = cl_around_pair_after(pair, kept, result);
    }
    Py_XDECREF(kept);
    return result;
}

#endif
