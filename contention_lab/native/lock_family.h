/* The Python types of the exclusive locks beside Mutex: what they take, and what they free. */
#ifndef CL_LOCK_FAMILY_H
#define CL_LOCK_FAMILY_H

#include "lock_slots.h"

/* TicketLock(name=None, *, yield_after=None) */
static PyObject *
cl_fifo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs, const char *format, int kind)
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
    return cl_fifo_new(type, args, kwargs, "|O$O:TicketLock", CL_KIND_TICKET);
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

#define CL_TICKET_DOC \
    "TicketLock(name=None, *, yield_after=None)\n--\n\n" \
    "A spinlock that is first come, first served: waiters draw numbers and watch which is served.\n\n" \
    "yield_after: call sched_yield() from that many rounds on. With more threads than cores a plain\n" \
    "one is very slow: the next in the queue is seldom on a core when its turn comes."

static PyType_Slot cl_ticket_slots[] = {
    {Py_tp_doc, CL_TICKET_DOC},
    {Py_tp_new, cl_ticket_new},
    {Py_tp_dealloc, cl_ticket_dealloc},
    {Py_tp_repr, cl_lock_repr},
    {Py_tp_methods, cl_lock_methods},
    {Py_tp_getset, cl_lock_attributes},
    {Py_tp_members, cl_lock_members},
    {0, NULL},
};

static PyType_Spec cl_ticket_spec = {
    .name = "contention_lab.locks.TicketLock",
    .basicsize = sizeof(cl_ticket_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_ticket_slots,
};

/* Adds these types to the module. -1: an exception. */
static int
cl_lock_family_add(PyObject *module)
{
    return cl_lock_type_add(module, "TicketLock", &cl_ticket_spec, cl_ticket_vectorcall);
}

#endif
