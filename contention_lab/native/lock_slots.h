/* Method tables and type specifications of the lock types. */
#ifndef CL_LOCK_SLOTS_H
#define CL_LOCK_SLOTS_H

#include "lock_type.h"

#define CL_ACQUIRE_DOC \
    "acquire($self, /, blocking=True, timeout=-1)\n--\n\n" \
    "Lock the lock: as threading.Lock.acquire().\n\n" \
    "Returns True once the lock is held, False if it could not be had at once (blocking=False)\n" \
    "or within `timeout` seconds. The GIL is released while waiting."
#define CL_RELEASE_DOC \
    "release($self, /)\n--\n\n" \
    "Release the lock, from any thread. RuntimeError if it is not held."

static PyMethodDef cl_lock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))cl_lock_acquire_method, METH_FASTCALL | METH_KEYWORDS,
     CL_ACQUIRE_DOC},
    {"acquire_lock", (PyCFunction)(void (*)(void))cl_lock_acquire_method,
     METH_FASTCALL | METH_KEYWORDS, "An obsolete synonym of acquire()."},
    {"release", cl_lock_release_method, METH_NOARGS, CL_RELEASE_DOC},
    {"release_lock", cl_lock_release_method, METH_NOARGS, "An obsolete synonym of release()."},
    {"locked", cl_lock_locked, METH_NOARGS,
     "locked($self, /)\n--\n\nWhether the lock is held by some thread."},
    {"locked_lock", cl_lock_locked, METH_NOARGS, "An obsolete synonym of locked()."},
    {"__enter__", cl_lock_enter, METH_NOARGS, "Acquire the lock; returns True."},
    {"__exit__", (PyCFunction)(void (*)(void))cl_lock_exit, METH_FASTCALL, "Release the lock."},
    {"_at_fork_reinit", cl_lock_at_fork_reinit, METH_NOARGS,
     "Make the lock free, in a forked child whose parent held it."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cl_lock_attributes[] = {
    {"name", cl_lock_get_name, NULL, "The name given when the lock was made, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef cl_lock_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(cl_lock, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define CL_MUTEX_DOC \
    "Mutex(name=None)\n--\n\n" \
    "A mutual exclusion lock whose waiters sleep (a futex on Linux, else a pthread condition).\n\n" \
    "A drop-in for threading.Lock that a recording sees: how long threads waited for it, who\n" \
    "held it, and where."
#define CL_SPIN_DOC \
    "SpinLock(name=None, *, backoff=False, yield_after=None, park_after=None)\n--\n\n" \
    "A test-and-test-and-set spinlock: waiters burn CPU (without the GIL) until it is free.\n\n" \
    "backoff: double the pause after every failed look, up to 1024 pauses. yield_after: call\n" \
    "sched_yield() from that many rounds on. park_after: sleep after that many rounds.\n" \
    "With more waiters than cores a plain spinlock takes the CPU from its own holder."

static PyType_Slot cl_mutex_slots[] = {
    {Py_tp_doc, CL_MUTEX_DOC},
    {Py_tp_new, cl_mutex_new},
    {Py_tp_dealloc, cl_lock_dealloc},
    {Py_tp_repr, cl_lock_repr},
    {Py_tp_methods, cl_lock_methods},
    {Py_tp_getset, cl_lock_attributes},
    {Py_tp_members, cl_lock_members},
    {0, NULL},
};

static PyType_Slot cl_spin_slots[] = {
    {Py_tp_doc, CL_SPIN_DOC},
    {Py_tp_new, cl_spin_new},
    {Py_tp_dealloc, cl_lock_dealloc},
    {Py_tp_repr, cl_lock_repr},
    {Py_tp_methods, cl_lock_methods},
    {Py_tp_getset, cl_lock_attributes},
    {Py_tp_members, cl_lock_members},
    {0, NULL},
};

static PyType_Spec cl_mutex_spec = {
    .name = "contention_lab.locks.Mutex",
    .basicsize = sizeof(cl_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_mutex_slots,
};

static PyType_Spec cl_spin_spec = {
    .name = "contention_lab.locks.SpinLock",
    .basicsize = sizeof(cl_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_spin_slots,
};

static int
cl_lock_type_add(PyObject *module, PyType_Spec *spec, vectorcallfunc make)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL) {
        return -1;
    }
    type->tp_vectorcall = make; /* not inherited: subclasses go through tp_new */
    int result = PyModule_AddType(module, type);
    Py_DECREF((PyObject *)type);
    return result;
}

#endif
