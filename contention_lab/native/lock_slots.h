/* Method tables and type specifications of the lock types. */
#ifndef CL_LOCK_SLOTS_H
#define CL_LOCK_SLOTS_H

#include "drop_in.h"

#define CL_ACQUIRE_DOC \
    "acquire($self, /, blocking=True, timeout=-1)\n--\n\n" \
    "Lock the lock: as threading.Lock.acquire().\n\n" \
    "Returns True once the lock is held, False if it could not be had at once (blocking=False)\n" \
    "or within `timeout` seconds. The GIL is released while waiting."
#define CL_RELEASE_DOC \
    "release($self, /)\n--\n\n" \
    "Release the lock, from any thread. RuntimeError if it is not held."

#define CL_LOCK_METHODS \
    {"acquire", (PyCFunction)(void (*)(void))cl_lock_acquire_method, METH_FASTCALL | METH_KEYWORDS, \
     CL_ACQUIRE_DOC}, \
    {"acquire_lock", (PyCFunction)(void (*)(void))cl_lock_acquire_method, \
     METH_FASTCALL | METH_KEYWORDS, "An obsolete synonym of acquire()."}, \
    {"release", cl_lock_release_method, METH_NOARGS, CL_RELEASE_DOC}, \
    {"release_lock", cl_lock_release_method, METH_NOARGS, "An obsolete synonym of release()."}, \
    {"locked", cl_lock_locked, METH_NOARGS, \
     "locked($self, /)\n--\n\nWhether the lock is held by some thread."}, \
    {"locked_lock", cl_lock_locked, METH_NOARGS, "An obsolete synonym of locked()."}, \
    {"__enter__", (PyCFunction)(void (*)(void))cl_lock_enter, METH_FASTCALL | METH_KEYWORDS, \
     "Acquire the lock; returns True."}, \
    {"__exit__", (PyCFunction)(void (*)(void))cl_lock_exit, METH_FASTCALL, "Release the lock."}, \
    {"_at_fork_reinit", cl_lock_at_fork_reinit, METH_NOARGS, \
     "Make the lock free, in a forked child whose parent held it."}

/* Of _is_owned: threading.Condition asks for it, and else tries to acquire: a failed try that is nobody's. */
static PyMethodDef cl_lock_methods[] = {
    CL_LOCK_METHODS,
    {"_is_owned", cl_lock_locked, METH_NOARGS, "For threading.Condition."},
    {NULL, NULL, 0, NULL},
};

/* Ours for threading.Lock, with a text of their own: see cl_drop_in_look(). Conditions ask as in condition.h. */
static PyMethodDef cl_plain_lock_methods[] = {
    CL_LOCK_METHODS,
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

/* What `record` puts in the place of threading.Lock and threading.RLock: they look like these. */

static PyMethodDef cl_rlock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))cl_rlock_acquire, METH_FASTCALL | METH_KEYWORDS,
     CL_ACQUIRE_DOC},
    {"release", cl_rlock_release, METH_NOARGS,
     "release($self, /)\n--\n\nRelease the lock once; RuntimeError if the thread does not own it."},
    {"__enter__", (PyCFunction)(void (*)(void))cl_rlock_enter, METH_FASTCALL | METH_KEYWORDS,
     "Acquire the lock; returns True."},
    {"__exit__", (PyCFunction)(void (*)(void))cl_rlock_exit, METH_FASTCALL, "Release the lock."},
    {"_is_owned", cl_rlock_is_owned, METH_NOARGS, "For threading.Condition."},
    {"_recursion_count", cl_rlock_recursion_count, METH_NOARGS, "For internal use by reentrant code."},
    {"_acquire_restore", cl_rlock_acquire_restore, METH_O, "For threading.Condition."},
    {"_release_save", cl_rlock_release_save, METH_NOARGS, "For threading.Condition."},
    {"_at_fork_reinit", cl_rlock_at_fork_reinit, METH_NOARGS,
     "Make the lock free, in a forked child whose parent held it."},
#if PY_VERSION_HEX >= 0x030E0000
    {"locked", cl_lock_locked, METH_NOARGS, "Whether some thread owns the lock."},
#endif
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cl_plain_lock_slots[] = {
    {Py_tp_doc, "A lock that a recording sees, in the place of threading.Lock."},
    {Py_tp_new, cl_plain_lock_new},
    {Py_tp_dealloc, cl_lock_dealloc},
    {Py_tp_repr, cl_lock_repr},
    {Py_tp_methods, cl_plain_lock_methods},
    {Py_tp_members, cl_lock_members},
    {0, NULL},
};

static PyType_Slot cl_rlock_slots[] = {
    {Py_tp_doc, "A re-entrant lock that a recording sees, in the place of threading.RLock."},
    {Py_tp_new, cl_rlock_new},
    {Py_tp_dealloc, cl_lock_dealloc},
    {Py_tp_repr, cl_rlock_repr},
    {Py_tp_methods, cl_rlock_methods},
    {Py_tp_members, cl_lock_members},
    {0, NULL},
};

/* Until 3.12 the type of a threading.Lock makes none: the function threading.Lock does. */
#if PY_VERSION_HEX < 0x030D0000
#define CL_PLAIN_LOCK_FLAGS Py_TPFLAGS_DISALLOW_INSTANTIATION
#else
#define CL_PLAIN_LOCK_FLAGS 0
#endif

static PyType_Spec cl_plain_lock_spec = {
    .name = "_thread.lock",
    .basicsize = sizeof(cl_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | CL_PLAIN_LOCK_FLAGS,
    .slots = cl_plain_lock_slots,
};

static PyType_Spec cl_rlock_spec = {
    .name = "_thread.RLock",
    .basicsize = sizeof(cl_rlock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = cl_rlock_slots,
};

/* Takes over what help() says of the original's type and methods, which is also where inspect.signature()
 * looks. */
static void
cl_drop_in_describe(const PyTypeObject *raw, PyType_Slot *slots, PyMethodDef *methods)
{
    slots[0].pfunc = (void *)(uintptr_t)raw->tp_doc;
    for (; methods->ml_name != NULL; methods++) {
        PyObject *theirs = PyDict_GetItemString(raw->tp_dict, methods->ml_name);
        if (theirs != NULL && Py_IS_TYPE(theirs, &PyMethodDescr_Type)) {
            methods->ml_doc = ((PyMethodDescrObject *)theirs)->d_method->ml_doc;
        }
    }
}

/* Looks at the originals. Call before the types are made. -1: an exception. */
static int
cl_drop_in_look(void)
{
    PyObject *thread_module = PyImport_ImportModule("_thread");
    if (thread_module == NULL) {
        return -1;
    }
    cl_raw_types[0] = cl_raw_type(thread_module, "LockType", "_thread.lock");
    cl_raw_types[1] = cl_raw_type(thread_module, "RLock", "_thread.RLock");
    Py_DECREF(thread_module);
    if (cl_raw_types[0] != NULL) {
        cl_drop_in_describe(cl_raw_types[0], cl_plain_lock_slots, cl_plain_lock_methods);
    }
    if (cl_raw_types[1] != NULL) {
        cl_drop_in_describe(cl_raw_types[1], cl_rlock_slots, cl_rlock_methods);
    }
    return 0;
}

/* Adds a type to the module under `name`. `make` is its vectorcall, NULL for none. */
static int
cl_lock_type_add(PyObject *module, const char *name, PyType_Spec *spec, vectorcallfunc make)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL) {
        return -1;
    }
    if (!(spec->flags & Py_TPFLAGS_DISALLOW_INSTANTIATION)) {
        type->tp_vectorcall = make; /* not inherited: subclasses go through tp_new */
    }
    int result = PyModule_AddObjectRef(module, name, (PyObject *)type);
    Py_DECREF((PyObject *)type);
    return result;
}

#endif
