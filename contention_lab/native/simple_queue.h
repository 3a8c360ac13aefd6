/* queue.SimpleQueue: waiting for an item.
 *
 * It is a C type, and immutable: what stands before its methods stands in their method table, so that queues
 * of any age and subclasses are recorded, and the type is what it was. A put or a get that need not wait
 * costs a call in C. Idle workers of a ThreadPoolExecutor wait in one.
 */
#ifndef CL_SIMPLE_QUEUE_H
#define CL_SIMPLE_QUEUE_H

#include "permits.h"

#define CL_PUT_FLAGS (METH_FASTCALL | METH_KEYWORDS)
#define CL_GET_FLAGS (METH_METHOD | METH_FASTCALL | METH_KEYWORDS)

typedef PyObject *(*cl_put_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* Set once, and kept: threads may be in our functions when a recording ends. */
static struct {
    PyTypeObject *type;
    PyObject *cls, *empty_error; /* of the records; queue.Empty */
    PyMethodDef *put, *get;
    PyCFunction empty;
    cl_put_function put_original;
    PyCMethod get_original;
    newfunc new_original;
} cl_queues;

static _Atomic uint32_t cl_queues_waited_for; /* threads in a recorded wait for any queue */

static int
cl_queues_recorded(void)
{
    return atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0
           && PyInterpreterState_Get() == PyInterpreterState_Main();
}

static PyObject *
cl_queue_put(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (__builtin_expect(atomic_load_explicit(&cl_queues_waited_for, memory_order_relaxed) != 0, 0)
        && cl_queues_recorded()) {
        cl_permits *record = cl_permits_find(cl_queues.cls, self);
        if (record == NULL) {
            return NULL;
        }
        if (__atomic_load_n(&record->waiting, __ATOMIC_RELAXED) != 0) {
            cl_coordination_wake(cl_permits_source(record));
        }
        Py_DECREF((PyObject *)record);
    }
    return cl_queues.put_original(self, args, nargs, names);
}

/* Whether a get() with these arguments waits where there is nothing; 0 also for arguments it will refuse. */
static int
cl_queue_blocks(PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *block = nargs > 0 ? args[0] : NULL, *timeout = nargs > 1 ? args[1] : NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        int is_block = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "block") == 0;
        *(is_block ? &block : &timeout) = args[nargs + i];
    }
    int blocks = block == NULL ? 1 : PyObject_IsTrue(block);
    if (blocks > 0 && timeout != NULL && timeout != Py_None) {
        blocks = PyFloat_AsDouble(timeout) >= 0;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return blocks > 0;
}

static PyObject *
cl_queue_wait(PyObject *self, PyTypeObject *cls, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    cl_permits *record = cl_permits_find(cl_queues.cls, self);
    if (record == NULL) {
        return NULL;
    }
    cl_lock *source = cl_permits_source(record);
    uint32_t epoch = record->beside.epoch;
    unsigned token = cl_coordination_begin(source, CL_COORDINATION, 0, 0, 0, 0);
    __atomic_fetch_add(&record->waiting, 1, __ATOMIC_RELAXED);
    atomic_fetch_add_explicit(&cl_queues_waited_for, 1, memory_order_relaxed);
    PyObject *item = cl_queues.get_original(self, cls, args, (size_t)nargs, names);
    atomic_fetch_sub_explicit(&cl_queues_waited_for, 1, memory_order_relaxed);
    if (record->beside.epoch == epoch) { /* else a newer recording has begun to count anew */
        __atomic_fetch_sub(&record->waiting, 1, __ATOMIC_RELAXED);
    }
    int outcome = item != NULL                                      ? CL_ACQUIRED
                  : PyErr_ExceptionMatches(cl_queues.empty_error) ? CL_TIMED_OUT
                                                                    : CL_INTERRUPTED;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    cl_coordination_end(source, token, outcome, source);
    PyErr_Restore(type, value, traceback);
    Py_DECREF((PyObject *)record);
    return item;
}

static PyObject *
cl_queue_get(PyObject *self, PyTypeObject *cls, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0
        && ((nargs == 0 && names == NULL) || cl_queue_blocks(args, (Py_ssize_t)nargs, names))) {
        PyObject *empty = cl_queues.empty(self, NULL);
        if (empty == NULL) {
            return NULL;
        }
        Py_DECREF(empty);
        if (empty == Py_True && cl_queues_recorded()) {
            return cl_queue_wait(self, cls, args, (Py_ssize_t)nargs, names);
        }
    }
    return cl_queues.get_original(self, cls, args, nargs, names);
}

/* Notes where a queue is made. */
static PyObject *
cl_queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = cl_queues.new_original(type, args, kwargs);
    if (self != NULL && cl_queues_recorded()) {
        PyObject *record = PyObject_CallOneArg(cl_queues.cls, self);
        if (record == NULL) {
            Py_CLEAR(self);
        }
        Py_XDECREF(record);
    }
    return self;
}

/* The definition of a method, if it is one in C with these flags, else NULL. */
static PyMethodDef *
cl_queue_method(PyTypeObject *type, const char *name, int flags)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)type, name);
    PyMethodDef *found = NULL;
    if (method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type)
        && ((PyMethodDescrObject *)method)->d_method->ml_flags == flags) {
        found = ((PyMethodDescrObject *)method)->d_method; /* the type's, which is kept */
    }
    PyErr_Clear();
    Py_XDECREF(method);
    return found;
}

static int
cl_queues_find(PyTypeObject *type, PyObject *cls, PyObject *empty_error)
{
    PyMethodDef *put = cl_queue_method(type, "put", CL_PUT_FLAGS);
    PyMethodDef *get = cl_queue_method(type, "get", CL_GET_FLAGS);
    PyMethodDef *empty = cl_queue_method(type, "empty", METH_NOARGS);
    if (put == NULL || get == NULL || empty == NULL || type->tp_new == NULL) {
        return 0;
    }
    cl_queues.type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    cl_queues.cls = Py_NewRef(cls);
    cl_queues.empty_error = Py_NewRef(empty_error);
    cl_queues.put = put;
    cl_queues.get = get;
    cl_queues.empty = empty->ml_meth;
    cl_queues.put_original = (cl_put_function)(void (*)(void))put->ml_meth;
    cl_queues.get_original = (PyCMethod)(void (*)(void))get->ml_meth;
    cl_queues.new_original = type->tp_new;
    return 1;
}

/* record_queues(type, cls, empty): put ours before the methods; False if this type is another kind. */
static PyObject *
cl_record_queues(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *cls, *empty_error;
    if (!PyArg_ParseTuple(args, "O!OO:record_queues", &PyType_Type, &type, &cls, &empty_error)) {
        return NULL;
    }
    if (cl_queues.type == NULL && !cl_queues_find((PyTypeObject *)type, cls, empty_error)) {
        Py_RETURN_FALSE;
    }
    if (cl_queues.type != (PyTypeObject *)type) {
        Py_RETURN_FALSE;
    }
    /* Whoever calls meanwhile gets one or the other: both are right. */
    __atomic_store_n(&cl_queues.put->ml_meth, (PyCFunction)(void (*)(void))cl_queue_put, __ATOMIC_RELEASE);
    __atomic_store_n(&cl_queues.get->ml_meth, (PyCFunction)(void (*)(void))cl_queue_get, __ATOMIC_RELEASE);
    cl_queues.type->tp_new = cl_queue_new;
    Py_RETURN_TRUE;
}

/* forget_queues(): the methods are what they were. */
static PyObject *
cl_forget_queues(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (cl_queues.type != NULL) {
        __atomic_store_n(&cl_queues.put->ml_meth, (PyCFunction)(void (*)(void))cl_queues.put_original,
                         __ATOMIC_RELEASE);
        __atomic_store_n(&cl_queues.get->ml_meth, (PyCFunction)(void (*)(void))cl_queues.get_original,
                         __ATOMIC_RELEASE);
        cl_queues.type->tp_new = cl_queues.new_original;
    }
    Py_RETURN_NONE;
}

#define CL_SIMPLE_QUEUE_METHODS \
    {"record_queues", cl_record_queues, METH_VARARGS, \
     "record_queues(type, cls, empty)\n--\n\nRecord waits for queues of a C type; whether that works."}, \
    {"forget_queues", cl_forget_queues, METH_NOARGS, "forget_queues()\n--\n\nNo longer."}

#endif
