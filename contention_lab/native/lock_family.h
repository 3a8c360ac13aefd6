/* The Python types of the exclusive locks beside Mutex: what they take, and what they free. */
#ifndef CL_LOCK_FAMILY_H
#define CL_LOCK_FAMILY_H

#include "lock_slots.h"

/* (name=None, *, yield_after=None) */
static PyObject *
cl_queue_lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs, const char *format, int kind)
{
    static char *keywords[] = {"name", "yield_after", NULL};
    PyObject *name = NULL, *yield_after = NULL;
    uint32_t yields = UINT32_MAX;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, keywords, &name, &yield_after)
        || cl_check_name(type, name) < 0 || cl_rounds(yield_after, "yield_after", &yields) < 0) {
        return NULL;
    }
    cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
    if (lock != NULL) {
        cl_lock_init(lock, kind, name);
        lock->yield_after = yields;
    }
    return (PyObject *)lock;
}

static PyObject *
cl_ticket_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return cl_queue_lock_new(type, args, kwargs, "|O$O:TicketLock", CL_KIND_TICKET);
}

static PyObject *
cl_ticket_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return cl_lock_vectorcall(CL_KIND_TICKET, (PyTypeObject *)type, args, nargsf, kwnames);
}

static void
cl_ticket_dealloc(PyObject *object)
{
    free(((cl_ticket_lock *)object)->list);
    cl_lock_dealloc(object);
}

static PyObject *
cl_mcs_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return cl_queue_lock_new(type, args, kwargs, "|O$O:McsLock", CL_KIND_MCS);
}

static PyObject *
cl_mcs_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return cl_lock_vectorcall(CL_KIND_MCS, (PyTypeObject *)type, args, nargsf, kwnames);
}

static void
cl_mcs_dealloc(PyObject *object)
{
    cl_mcs_free((cl_mcs_lock *)object);
    cl_lock_dealloc(object);
}

static PyObject *
cl_adaptive_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", NULL};
    PyObject *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:AdaptiveMutex", keywords, &name)
        || cl_check_name(type, name) < 0) {
        return NULL;
    }
    cl_lock *lock = (cl_lock *)type->tp_alloc(type, 0);
    if (lock != NULL) {
        cl_lock_init(lock, CL_KIND_ADAPTIVE, name);
    }
    return (PyObject *)lock;
}

static PyObject *
cl_adaptive_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return cl_lock_vectorcall(CL_KIND_ADAPTIVE, (PyTypeObject *)type, args, nargsf, kwnames);
}

#define CL_QUEUE_DOC \
    "yield_after: call sched_yield() from that many rounds on. With more threads than cores a plain\n" \
    "one is very slow: the next in the queue is seldom on a core when its turn comes. A thread that\n" \
    "gave up (a timeout, a signal) and comes back before its turn has kept its place."
#define CL_TICKET_DOC \
    "TicketLock(name=None, *, yield_after=None)\n--\n\n" \
    "A spinlock that is first come, first served: waiters draw numbers and watch which is served.\n\n" \
    CL_QUEUE_DOC
#define CL_MCS_DOC \
    "McsLock(name=None, *, yield_after=None)\n--\n\n" \
    "A spinlock that is first come, first served: each waiter watches a word of its own.\n\n" \
    CL_QUEUE_DOC
#define CL_ADAPTIVE_DOC \
    "AdaptiveMutex(name=None)\n--\n\n" \
    "A mutex whose waiters spin while the holder runs on a core, and sleep else.\n\n" \
    "How long they spin at most, it learns from what spinning brought: up to 50 microseconds."

/* A type's slots: its text, how it is made, how it goes; the rest is that of Mutex. */
#define CL_FAMILY_SLOTS(doc, make, dealloc) \
    {Py_tp_doc, doc}, {Py_tp_new, make}, {Py_tp_dealloc, dealloc}, {Py_tp_repr, cl_lock_repr}, \
    {Py_tp_methods, cl_lock_methods}, {Py_tp_getset, cl_lock_attributes}, \
    {Py_tp_members, cl_lock_members}, {0, NULL}

static PyType_Slot cl_ticket_slots[] = {CL_FAMILY_SLOTS(CL_TICKET_DOC, cl_ticket_new, cl_ticket_dealloc)};
static PyType_Slot cl_mcs_slots[] = {CL_FAMILY_SLOTS(CL_MCS_DOC, cl_mcs_new, cl_mcs_dealloc)};
static PyType_Slot cl_adaptive_slots[] = {
    CL_FAMILY_SLOTS(CL_ADAPTIVE_DOC, cl_adaptive_new, cl_lock_dealloc)};

static PyType_Spec cl_ticket_spec = {
    .name = "contention_lab.locks.TicketLock",
    .basicsize = sizeof(cl_ticket_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_ticket_slots,
};

static PyType_Spec cl_mcs_spec = {
    .name = "contention_lab.locks.McsLock",
    .basicsize = sizeof(cl_mcs_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_mcs_slots,
};

static PyType_Spec cl_adaptive_spec = {
    .name = "contention_lab.locks.AdaptiveMutex",
    .basicsize = sizeof(cl_adaptive_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_adaptive_slots,
};

/* Adds these types to the module. -1: an exception. */
static int
cl_lock_family_add(PyObject *module)
{
    int error = pthread_atfork(NULL, NULL, cl_adaptive_after_fork);
    if (error != 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    return cl_lock_type_add(module, "TicketLock", &cl_ticket_spec, cl_ticket_vectorcall) < 0
                   || cl_lock_type_add(module, "McsLock", &cl_mcs_spec, cl_mcs_vectorcall) < 0
                   || cl_lock_type_add(module, "AdaptiveMutex", &cl_adaptive_spec, cl_adaptive_vectorcall) < 0
               ? -1
               : 0;
}

#endif
