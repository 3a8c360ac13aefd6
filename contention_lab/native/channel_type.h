/* The interface of Channel: methods, their arguments and errors, what it owns. */
#ifndef CL_CHANNEL_TYPE_H
#define CL_CHANNEL_TYPE_H

#include "channel.h"
#include "lock_slots.h"

/* The arguments of a method that takes `plain` of them and then a timeout. -1: an exception. */
static int
cl_channel_timeout(const char *method, Py_ssize_t plain, PyObject *const *args, Py_ssize_t count,
                   PyObject *kwnames, int *blocks, uint64_t *deadline)
{
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    *blocks = 1;
    *deadline = CL_FOREVER;
    if (count < plain || count + named > plain + 1) {
        PyErr_Format(PyExc_TypeError, "%s() takes %s (%zd arguments given)", method,
                     plain == 0 ? "at most a timeout" : "an item and at most a timeout", count + named);
        return -1;
    }
    if (named != 0 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "timeout") != 0) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", method,
                     PyTuple_GET_ITEM(kwnames, 0));
        return -1;
    }
    PyObject *timeout = count + named > plain ? args[plain] : Py_None;
    if (timeout == Py_None) {
        return 0;
    }
    if (cl_deadline(timeout, 1, deadline) < 0) {
        return -1;
    }
    *blocks = *deadline == CL_FOREVER || PyObject_IsTrue(timeout) != 0;
    return 0;
}

/* The exception that says why nothing was sent or received, unless one is set already. */
static void
cl_channel_raise(cl_channel *self, int result, const char *in_time)
{
    if (result == CL_CHANNEL_IS_CLOSED) {
        PyErr_Format(cl_closed_error, "%R is closed", self);
    }
    else if (result == CL_CHANNEL_NOT_NOW) {
        PyErr_Format(PyExc_TimeoutError, "%s in time: %R", in_time, self);
    }
}

static PyObject *
cl_channel_send(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int blocks;
    uint64_t deadline;
    if (cl_channel_timeout("send", 1, args, count, kwnames, &blocks, &deadline) < 0) {
        return NULL;
    }
    int result = cl_channel_give((cl_channel *)object, args[0], blocks, deadline);
    if (result != CL_CHANNEL_DONE) {
        cl_channel_raise((cl_channel *)object, result, "no room");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_channel_try_send(PyObject *object, PyObject *item)
{
    int result = cl_channel_give((cl_channel *)object, item, 0, 0);
    if (result != CL_CHANNEL_DONE && result != CL_CHANNEL_NOT_NOW) {
        cl_channel_raise((cl_channel *)object, result, "");
        return NULL;
    }
    return PyBool_FromLong(result == CL_CHANNEL_DONE);
}

static PyObject *
cl_channel_receive(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int blocks;
    uint64_t deadline;
    if (cl_channel_timeout("receive", 0, args, count, kwnames, &blocks, &deadline) < 0) {
        return NULL;
    }
    PyObject *item = NULL;
    int result = cl_channel_get((cl_channel *)object, blocks, deadline, &item);
    if (result != CL_CHANNEL_DONE) {
        cl_channel_raise((cl_channel *)object, result, "no item");
    }
    return item;
}

static PyObject *
cl_channel_try_receive(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "try_receive() takes at most a default (%zd arguments given)", count);
        return NULL;
    }
    PyObject *item = NULL;
    int result = cl_channel_get((cl_channel *)object, 0, 0, &item);
    if (result == CL_CHANNEL_NOT_NOW) {
        return Py_NewRef(count == 1 ? args[0] : Py_None);
    }
    if (result != CL_CHANNEL_DONE) {
        cl_channel_raise((cl_channel *)object, result, "");
    }
    return item;
}

static PyObject *
cl_channel_next(PyObject *object)
{
    PyObject *item = NULL;
    (void)cl_channel_get((cl_channel *)object, 1, CL_FOREVER, &item);
    return item; /* NULL without an exception ends the iteration: it is closed */
}

static PyObject *
cl_channel_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_channel_end((cl_channel *)object);
    Py_RETURN_NONE;
}

static Py_ssize_t
cl_channel_length(PyObject *object)
{
    cl_channel_list *list = &((cl_channel *)object)->list;
    return (Py_ssize_t)(atomic_load_explicit(&list->count, memory_order_relaxed) / CL_CHANNEL_ITEM);
}

static int
cl_channel_is_closed(cl_channel *self)
{
    return (atomic_load_explicit(&self->list.count, memory_order_relaxed) & CL_CHANNEL_CLOSED) != 0;
}

static PyObject *
cl_channel_get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(cl_channel_is_closed((cl_channel *)object));
}

static PyObject *
cl_channel_get_maxsize(PyObject *object, void *unused)
{
    (void)unused;
    uint64_t limit = ((cl_channel *)object)->list.limit;
    return limit == UINT64_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(limit / CL_CHANNEL_ITEM);
}

static PyObject *
cl_channel_repr(PyObject *object)
{
    cl_channel *self = (cl_channel *)object;
    const char *state = cl_channel_is_closed(self) ? "closed" : "open", *type = Py_TYPE(object)->tp_name;
    Py_ssize_t items = cl_channel_length(object);
    return self->lock.name == NULL
               ? PyUnicode_FromFormat("<%s %s object, %zd inside, at %p>", state, type, items, object)
               : PyUnicode_FromFormat("<%s %s object %R, %zd inside, at %p>", state, type, self->lock.name,
                                      items, object);
}

static PyObject *
cl_channel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "maxsize", NULL};
    PyObject *name = NULL, *maxsize = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:Channel", keywords, &name, &maxsize)
        || cl_check_name(type, name) < 0) {
        return NULL;
    }
    uint64_t limit = UINT64_MAX;
    if (maxsize != Py_None) {
        Py_ssize_t most = PyNumber_AsSsize_t(maxsize, PyExc_OverflowError);
        if (most == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (most < 1) {
            PyErr_Format(PyExc_ValueError,
                         "maxsize must be a positive number of items, or None for no bound, not %zd", most);
            return NULL;
        }
        limit = (uint64_t)most * CL_CHANNEL_ITEM;
    }
    cl_channel *self = (cl_channel *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    cl_lock_init(&self->lock, CL_KIND_MUTEX, name);
    self->lock.type_name = Py_NewRef(cl_channel_text);
    cl_channel_list_init(&self->list, limit);
    cl_latch_take(&cl_channels.latch);
    self->after = cl_channels.any;
    if (self->after != NULL) {
        self->after->before = self;
    }
    cl_channels.any = self;
    cl_latch_give(&cl_channels.latch);
    return (PyObject *)self;
}

static int
cl_channel_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    return cl_channel_list_traverse(&((cl_channel *)object)->list, visit, arg);
}

static int
cl_channel_clear(PyObject *object)
{
    cl_channel_list_clear(&((cl_channel *)object)->list);
    return 0;
}

static void
cl_channel_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_TRASHCAN_BEGIN(object, cl_channel_dealloc) /* a channel in a channel, and so on, is no deep recursion */
    cl_channel *self = (cl_channel *)object;
    if (self->lock.weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    cl_latch_take(&cl_channels.latch);
    *(self->before == NULL ? &cl_channels.any : &self->before->after) = self->after;
    if (self->after != NULL) {
        self->after->before = self->before;
    }
    cl_latch_give(&cl_channels.latch);
    cl_channel_list_clear(&self->list);
    cl_channel_list_free(&self->list);
    cl_lock_dealloc(object);
    Py_TRASHCAN_END
}

static PyMethodDef cl_channel_methods[] = {
    {"send", (PyCFunction)(void (*)(void))cl_channel_send, METH_FASTCALL | METH_KEYWORDS,
     "send($self, item, /, timeout=None)\n--\n\n"
     "Send an item; in a bounded channel, wait for room, at most `timeout` seconds.\n\n"
     "TimeoutError if there was none in time, ClosedError if the channel is closed."},
    {"try_send", cl_channel_try_send, METH_O,
     "try_send($self, item, /)\n--\n\n"
     "Send an item if there is room at once; whether there was. ClosedError if it is closed."},
    {"receive", (PyCFunction)(void (*)(void))cl_channel_receive, METH_FASTCALL | METH_KEYWORDS,
     "receive($self, /, timeout=None)\n--\n\n"
     "Receive the oldest item; wait for one, at most `timeout` seconds.\n\n"
     "TimeoutError if none came in time, ClosedError if the channel is closed and has none left,\n"
     "RuntimeError if another thread is in receive()."},
    {"try_receive", (PyCFunction)(void (*)(void))cl_channel_try_receive, METH_FASTCALL,
     "try_receive($self, default=None, /)\n--\n\n"
     "The oldest item if there is one, else `default`. Errors as receive()."},
    {"close", cl_channel_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "End the channel: nothing more can be sent, and what was sent can be received. Wakes who waits."},
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, "Channel[int]: a type hint."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cl_channel_attributes[] = {
    {"name", cl_lock_get_name, NULL, "The name given when the channel was made, or None.", NULL},
    {"maxsize", cl_channel_get_maxsize, NULL, "How many items it holds at most; None: no bound.", NULL},
    {"closed", cl_channel_get_closed, NULL, "Whether it has been closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define CL_CHANNEL_DOC \
    "Channel(name=None, *, maxsize=None)\n--\n\n" \
    "A queue from any threads to one at a time: `send`, `receive`, `close`, `for item in channel`.\n\n" \
    "Items of one thread are received in the order it sent them. With maxsize, senders wait while\n" \
    "there are that many; who of them is next is not promised. len() is how many are inside."

static PyType_Slot cl_channel_slots[] = {
    {Py_tp_doc, CL_CHANNEL_DOC},
    {Py_tp_new, cl_channel_new},
    {Py_tp_dealloc, cl_channel_dealloc},
    {Py_tp_traverse, cl_channel_traverse},
    {Py_tp_clear, cl_channel_clear},
    {Py_tp_repr, cl_channel_repr},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, cl_channel_next},
    {Py_sq_length, cl_channel_length},
    {Py_tp_methods, cl_channel_methods},
    {Py_tp_getset, cl_channel_attributes},
    {Py_tp_members, cl_lock_members},
    {0, NULL},
};

static PyType_Spec cl_channel_spec = {
    .name = "contention_lab.locks.Channel",
    .basicsize = sizeof(cl_channel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = cl_channel_slots,
};

/* Adds Channel and ClosedError to the module. -1: an exception. */
static int
cl_channel_add_type(PyObject *module)
{
    cl_channel_text = PyUnicode_InternFromString("Channel");
    cl_closed_error = PyErr_NewExceptionWithDoc("contention_lab.locks.ClosedError",
                                                "The channel is closed: nothing can be sent, and"
                                                " nothing is left to receive.", NULL, NULL);
    int error = pthread_atfork(cl_channels_before_fork, cl_channels_in_parent, cl_channels_in_child);
    if (error != 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    return error != 0 || cl_channel_text == NULL || cl_closed_error == NULL
                   || PyModule_AddObjectRef(module, "ClosedError", cl_closed_error) < 0
                   || cl_lock_type_add(module, "Channel", &cl_channel_spec, NULL) < 0
               ? -1
               : 0;
}

#endif
