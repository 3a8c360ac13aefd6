/* Executors of concurrent.futures: who submits what, and when a worker takes it.
 *
 * What a thread submits is noted while it does: the future that is made meanwhile goes by the entry of the
 * executor's results, and the task waits for the executor's workers from then on (pool_task.h).
 */
#ifndef CL_POOL_H
#define CL_POOL_H

#include "around.h"
#include "condition.h"
#include "pool_task.h"

typedef struct {
    cl_beside beside;
    PyObject *results, *workers; /* owned: Sources */
} cl_pool;

static PyTypeObject *cl_pool_type;                     /* kept */
static PyObject *cl_thread_pools, *cl_process_pools;   /* the classes of their records; kept */
static CL_TLS cl_pool *cl_submitting;                  /* owned: where this thread is putting a task */

static struct {
    PyObject *queued, *fn, *task, *func, *future, *state, *condition, *pending; /* names, and a value; kept */
} cl_pool_names;

static int
cl_pools_ready(void)
{
    static const char *const names[] = {"_contention_lab_queued", "fn", "task", "func", "future", "_state",
                                        "_condition", "PENDING"};
    PyObject **const places[] = {&cl_pool_names.queued, &cl_pool_names.fn, &cl_pool_names.task,
                                 &cl_pool_names.func, &cl_pool_names.future, &cl_pool_names.state,
                                 &cl_pool_names.condition, &cl_pool_names.pending};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *places[i] = PyUnicode_InternFromString(names[i]);
        if (*places[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

/* A new reference to an attribute, or NULL without an exception. */
static PyObject *
cl_pool_attribute(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) {
        PyErr_Clear();
    }
    return value;
}

/* The record of an executor, a new reference. NULL: none, or an exception that is to be raised. */
static cl_pool *
cl_pool_find(PyObject *records, PyObject *executor)
{
    cl_pool *pool = (cl_pool *)cl_beside_find(records, executor);
    if (pool == NULL) {
        (void)cl_contain(NULL);
    }
    else if (!PyObject_TypeCheck((PyObject *)pool, cl_pool_type) || pool->results == NULL
             || pool->workers == NULL || cl_as_ours(pool->results) == NULL
             || cl_as_ours(pool->workers) == NULL) {
        Py_CLEAR(pool);
    }
    return pool;
}

static PyObject *
cl_pool_submit(PyObject *records, PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    int recorded = atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0
                   && PyVectorcall_NARGS(nargsf) != 0;
    cl_pool *pool = recorded ? cl_pool_find(records, args[0]) : NULL;
    if (pool == NULL) {
        return PyErr_Occurred() ? NULL : cl_around_original(function, args, nargsf, names);
    }
    Py_XSETREF(cl_submitting, pool);
    PyObject *future = cl_around_original(function, args, nargsf, names);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_CLEAR(cl_submitting);
    PyErr_Restore(type, value, traceback);
    return future;
}

static PyObject *
cl_thread_pool_submit(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    return cl_pool_submit(cl_thread_pools, function, args, nargsf, names);
}

static PyObject *
cl_process_pool_submit(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    return cl_pool_submit(cl_process_pools, function, args, nargsf, names);
}

/* Future.__init__(self): the lock inside goes by the entry of the executor's results. */
static PyObject *
cl_future_made(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    PyObject *result = cl_around_original(function, args, nargsf, names);
    if (result == NULL || cl_submitting == NULL || PyVectorcall_NARGS(nargsf) == 0) {
        return result;
    }
    PyObject *condition = PyObject_GetAttr(args[0], cl_pool_names.condition);
    PyObject *lock = condition == NULL ? NULL : PyObject_GetAttr(condition, cl_conditions.lock);
    if (lock == NULL) {
        PyErr_Clear();
    }
    else if (cl_as_ours(lock) != NULL) {
        cl_lock_belongs(cl_as_ours(lock), cl_as_ours(cl_submitting->results), 1);
    }
    Py_XDECREF(lock);
    Py_XDECREF(condition);
    return result;
}

/* _WorkItem.__init__(self, ...): it waits for a worker from now on. */
static PyObject *
cl_work_made(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    PyObject *result = cl_around_original(function, args, nargsf, names);
    if (result == NULL || cl_submitting == NULL || PyVectorcall_NARGS(nargsf) == 0) {
        return result;
    }
    PyObject *task = (PyObject *)cl_pool_task_make(cl_submitting->workers);
    if (task == NULL || PyObject_SetAttr(args[0], cl_pool_names.queued, task) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(task);
    return result;
}

/* What a task calls, without the partials around it: a new reference, NULL if that cannot be told. */
static PyObject *
cl_work_function(PyObject *work)
{
    PyObject *function = cl_pool_attribute(work, cl_pool_names.fn);
    if (function == NULL) { /* since Python 3.14 */
        PyObject *task = cl_pool_attribute(work, cl_pool_names.task);
        if (task != NULL && PyTuple_Check(task) && PyTuple_GET_SIZE(task) > 0) {
            function = Py_NewRef(PyTuple_GET_ITEM(task, 0));
        }
        Py_XDECREF(task);
    }
    while (function != NULL && strcmp(Py_TYPE(function)->tp_name, "functools.partial") == 0) {
        PyObject *inner = cl_pool_attribute(function, cl_pool_names.func);
        if (inner == NULL) {
            break;
        }
        Py_SETREF(function, inner);
    }
    return function;
}

static int
cl_work_is_cancelled(PyObject *work)
{
    PyObject *future = cl_pool_attribute(work, cl_pool_names.future);
    PyObject *state = future == NULL ? NULL : cl_pool_attribute(future, cl_pool_names.state);
    int cancelled = state != NULL && PyUnicode_Check(state)
                    && PyUnicode_Compare(state, cl_pool_names.pending) != 0;
    Py_XDECREF(state);
    Py_XDECREF(future);
    return cancelled;
}

/* _WorkItem.run(self, ...) */
static PyObject *
cl_work_run(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names)
{
    int recorded = atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0
                   && PyVectorcall_NARGS(nargsf) != 0;
    PyObject *queued = recorded ? cl_pool_attribute(args[0], cl_pool_names.queued) : NULL;
    if (queued == NULL || !Py_IS_TYPE(queued, cl_pool_task_type)) {
        Py_XDECREF(queued);
        return cl_around_original(function, args, nargsf, names);
    }
    PyObject *called = cl_work_function(args[0]);
    if (called != NULL) {
        cl_pool_task_begin((cl_pool_task *)queued, called, cl_work_is_cancelled(args[0]));
        Py_DECREF(called);
    }
    PyObject *result = cl_around_original(function, args, nargsf, names);
    cl_pool_task_end((cl_pool_task *)queued);
    Py_DECREF(queued);
    return result;
}

static int
cl_pool_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((cl_pool *)object)->results);
    Py_VISIT(((cl_pool *)object)->workers);
    return cl_beside_traverse(object, visit, arg);
}

static int
cl_pool_clear(PyObject *object)
{
    Py_CLEAR(((cl_pool *)object)->results);
    Py_CLEAR(((cl_pool *)object)->workers);
    return cl_beside_clear(object);
}

static void
cl_pool_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_CLEAR(((cl_pool *)object)->results);
    Py_CLEAR(((cl_pool *)object)->workers);
    cl_beside_dealloc(object);
}

static PyMemberDef cl_pool_members[] = {
    {"results", T_OBJECT_EX, offsetof(cl_pool, results), 0, "What threads wait for in Future.result()."},
    {"workers", T_OBJECT_EX, offsetof(cl_pool, workers), 0, "What tasks wait for until they begin."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot cl_pool_slots[] = {
    {Py_tp_doc, "Pool(executor)\n--\n\nAn executor's entries in the trace."},
    {Py_tp_dealloc, cl_pool_dealloc},
    {Py_tp_traverse, cl_pool_traverse},
    {Py_tp_clear, cl_pool_clear},
    {Py_tp_members, cl_pool_members},
    {0, NULL},
};

static PyType_Spec cl_pool_spec = {
    .name = "contention_lab.native._core.Pool",
    .basicsize = sizeof(cl_pool),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = cl_pool_slots,
};

#define CL_POOL_AROUNDS \
    {"ThreadPoolExecutor.submit", cl_thread_pool_submit, &cl_thread_pools}, \
    {"ProcessPoolExecutor.submit", cl_process_pool_submit, &cl_process_pools}, \
    {"Future.__init__", cl_future_made, NULL}, \
    {"_WorkItem.__init__", cl_work_made, NULL}, \
    {"_WorkItem.run", cl_work_run, NULL}

#endif
