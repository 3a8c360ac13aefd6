/* The Python types RWLock and RWLockSide: a reader-writer lock whose sides have the interface of a lock.
 *
 * Each side is a lock of its own in the trace. A hold is recorded with every side that it made somebody wait
 * on: what kept a writer out is found with the write side, be it a reader's hold or a writer's.
 *
 * A reader's hold begins where the thread's list of what it holds says. If another thread releases it, that
 * is not known: such a hold is not recorded, and the side counts as a signal from then on.
 */
#ifndef CL_RWLOCK_H
#define CL_RWLOCK_H

#include "lock_family.h"

/* What `.read` and `.write` give: it keeps the lock alive. */
typedef struct {
    cl_rw_face face;
    PyObject *whole; /* owned */
    PyObject *weak_references;
} cl_rw_handle;

static PyTypeObject *cl_rwlock_type, *cl_rw_side_type; /* kept */

/* Takes the hold of this thread that is to end out of its list; 0: it is not there. */
static int
cl_rw_hold_end(cl_thread *thread, cl_lock *side, cl_hold_record *hold)
{
    for (uint32_t at = cl_held_count(thread); at-- > 0;) {
        uint64_t what = cl_held_what(thread, at);
        if (what >> 32 == side->id) {
            hold->site = (uint32_t)what;
            hold->start_ns = atomic_load_explicit(&thread->held[at].since, memory_order_relaxed);
            cl_held_remove_at(thread, at);
            return 1;
        }
    }
    if (atomic_load_explicit(&side->hold_epoch, memory_order_relaxed) == thread->epoch) {
        cl_held_hand_off(thread, side);
    }
    return 0;
}

/* How many wait on this side, one at least if somebody has given up since it was asked last. */
static uint32_t
cl_rw_blocked(cl_lock *side)
{
    uint32_t waiters = atomic_load_explicit(&side->waiters, memory_order_acquire);
    int gave_up = atomic_load_explicit(&side->gave_up, memory_order_relaxed) != 0
                  && atomic_exchange_explicit(&side->gave_up, 0, memory_order_relaxed) != 0;
    return waiters == 0 && gave_up ? 1 : waiters;
}

/* 0, or -1 if nobody was inside on this side (no exception set). */
static int
cl_rw_release(cl_lock *side)
{
    cl_lock *other = cl_rw_other(side);
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_get(epoch);
    cl_block *block = thread == NULL || cl_session.level < CL_LEVEL_PROFILE
                          ? NULL
                          : cl_block_get(thread, side->id, side, cl_lock_register);
    if (block == NULL) {
        return cl_rw_unlock(side) == CL_FREE ? -1 : 0;
    }
    cl_hold_record hold = {.lock = side->id, .thread = thread->id, .release_thread = thread->id};
    hold.waiters = cl_rw_blocked(side);
    uint32_t across = cl_rw_blocked(other);
    hold.end_ns = cl_now();
    if (cl_rw_unlock(side) == CL_FREE) {
        return -1;
    }
    if (!cl_rw_hold_end(thread, side, &hold)) {
        return 0;
    }
    if (hold.end_ns < hold.start_ns) {
        hold.end_ns = hold.start_ns;
    }
    if (__builtin_expect((thread->absence.calls | thread->absence.natives) != 0, 0)) {
        cl_absence_overdue(thread);
    }
    uint32_t waiters = hold.waiters;
    cl_record_hold(thread, block, &hold, waiters != 0);
    if (across != 0 && cl_block_get(thread, other->id, other, cl_lock_register) != NULL) {
        hold.lock = other->id;
        hold.waiters = across;
        hold.flags = 0;
        if (hold.stack == 0) {
            hold.stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
        }
        cl_thread_record(thread, CL_HOLDS, &hold, sizeof hold);
    }
    if (__builtin_expect(thread->name_tries < CL_NAME_TRIES, 0)) {
        cl_thread_look_for_name(thread);
    }
    return 0;
}

static inline cl_lock *
cl_rw_side(PyObject *object)
{
    return ((cl_rw_face *)object)->side;
}

static PyObject *
cl_rw_acquire_method(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return cl_lock_acquire_method((PyObject *)cl_rw_side(object), args, count, kwnames);
}

static PyObject *
cl_rw_enter_method(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return cl_lock_enter((PyObject *)cl_rw_side(object), args, count, kwnames);
}

static PyObject *
cl_rw_release_method(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (cl_rw_release(cl_rw_side(object)) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_rw_exit_method(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    return cl_rw_release_method(object, NULL);
}

static PyObject *
cl_rw_side_locked(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(cl_rw_inside(cl_rw_side(object)) != 0);
}

static int
cl_rw_is_held(cl_rwlock *self)
{
    return cl_rw_inside(&self->read) != 0 || cl_rw_inside(&self->write) != 0;
}

static PyObject *
cl_rw_locked(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(cl_rw_is_held((cl_rwlock *)object));
}

static PyObject *
cl_rw_at_fork_reinit(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_rwlock *self = cl_rw_of(cl_rw_side(object));
    Py_XDECREF(cl_lock_at_fork_reinit((PyObject *)&self->read, NULL));
    return cl_lock_at_fork_reinit((PyObject *)&self->write, NULL);
}

static PyObject *
cl_rw_get_name(PyObject *object, void *unused)
{
    return cl_lock_get_name((PyObject *)cl_rw_side(object), unused);
}

static PyObject *
cl_rw_repr(PyObject *object)
{
    cl_lock *side = cl_rw_side(object);
    int held = Py_TYPE(object) == cl_rw_side_type ? cl_rw_inside(side) != 0 : cl_rw_is_held(cl_rw_of(side));
    const char *part = Py_TYPE(object) != cl_rw_side_type ? "" : side->kind == CL_KIND_READ ? ".read" : ".write";
    const char *type = part[0] != 0 ? "contention_lab.locks.RWLock" : Py_TYPE(object)->tp_name;
    const char *state = held ? "locked" : "unlocked";
    return side->name == NULL
               ? PyUnicode_FromFormat("<%s %s%s object at %p>", state, type, part, object)
               : PyUnicode_FromFormat("<%s %s%s object %R at %p>", state, type, part, side->name, object);
}

static PyObject *
cl_rw_handle_get(PyObject *object, void *kind)
{
    cl_rwlock *self = (cl_rwlock *)object;
    cl_rw_handle *handle = (cl_rw_handle *)cl_rw_side_type->tp_alloc(cl_rw_side_type, 0);
    if (handle != NULL) {
        handle->face.side = kind == NULL ? &self->read : &self->write;
        handle->whole = Py_NewRef(object);
    }
    return (PyObject *)handle;
}

static void
cl_rw_handle_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (((cl_rw_handle *)object)->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    Py_DECREF(((cl_rw_handle *)object)->whole);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

static PyObject *
cl_rw_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", NULL};
    PyObject *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:RWLock", keywords, &name)
        || cl_check_name(type, name) < 0) {
        return NULL;
    }
    cl_rwlock *self = (cl_rwlock *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->face.side = &self->write;
        cl_lock_init(&self->read, CL_KIND_READ, name);
        cl_lock_init(&self->write, CL_KIND_WRITE, name);
        self->read.label = CL_LABEL_READ;
        self->write.label = CL_LABEL_WRITE;
    }
    return (PyObject *)self;
}

static void
cl_rw_dealloc(PyObject *object)
{
    cl_rwlock *self = (cl_rwlock *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    cl_lock_drop(&self->read);
    cl_lock_drop(&self->write);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

#define CL_RW_METHODS(locked) \
    {"acquire", (PyCFunction)(void (*)(void))cl_rw_acquire_method, METH_FASTCALL | METH_KEYWORDS, \
     CL_ACQUIRE_DOC}, \
    {"acquire_lock", (PyCFunction)(void (*)(void))cl_rw_acquire_method, \
     METH_FASTCALL | METH_KEYWORDS, "An obsolete synonym of acquire()."}, \
    {"release", cl_rw_release_method, METH_NOARGS, CL_RELEASE_DOC}, \
    {"release_lock", cl_rw_release_method, METH_NOARGS, "An obsolete synonym of release()."}, \
    {"locked", locked, METH_NOARGS, "locked($self, /)\n--\n\nWhether some thread is inside."}, \
    {"locked_lock", locked, METH_NOARGS, "An obsolete synonym of locked()."}, \
    {"__enter__", (PyCFunction)(void (*)(void))cl_rw_enter_method, METH_FASTCALL | METH_KEYWORDS, \
     "Acquire the lock; returns True."}, \
    {"__exit__", (PyCFunction)(void (*)(void))cl_rw_exit_method, METH_FASTCALL, "Release the lock."}, \
    {"_is_owned", cl_rw_side_locked, METH_NOARGS, "For threading.Condition."}, \
    {"_at_fork_reinit", cl_rw_at_fork_reinit, METH_NOARGS, \
     "Make the whole lock free, in a forked child."}, \
    {NULL, NULL, 0, NULL}

static PyMethodDef cl_rwlock_methods[] = {CL_RW_METHODS(cl_rw_locked)};
static PyMethodDef cl_rw_side_methods[] = {CL_RW_METHODS(cl_rw_side_locked)};

static PyGetSetDef cl_rwlock_attributes[] = {
    {"name", cl_rw_get_name, NULL, "The name given when the lock was made, or None.", NULL},
    {"read", cl_rw_handle_get, NULL, "The side for readers, who may be inside together.", NULL},
    {"write", cl_rw_handle_get, NULL, "The side for writers, who are alone inside.", ""},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyGetSetDef cl_rw_side_attributes[] = {
    {"name", cl_rw_get_name, NULL, "The name given when the lock was made, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef cl_rwlock_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(cl_rwlock, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef cl_rw_side_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(cl_rw_handle, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define CL_RWLOCK_DOC \
    "RWLock(name=None)\n--\n\n" \
    "A phase-fair reader-writer lock: `with lock.read:`, `with lock.write:`.\n\n" \
    "Readers are inside together, writers alone. While both wait, their phases alternate: a reader\n" \
    "waits for one writer at most, and no writer starves. Both sides have the interface of\n" \
    "threading.Lock; the lock's own acquire() and release() are those of `write`. It is not\n" \
    "re-entrant: a thread that is inside and wants the other side waits for itself."

static PyType_Slot cl_rwlock_slots[] = {
    {Py_tp_doc, CL_RWLOCK_DOC},
    {Py_tp_new, cl_rw_new},
    {Py_tp_dealloc, cl_rw_dealloc},
    {Py_tp_repr, cl_rw_repr},
    {Py_tp_methods, cl_rwlock_methods},
    {Py_tp_getset, cl_rwlock_attributes},
    {Py_tp_members, cl_rwlock_members},
    {0, NULL},
};

static PyType_Slot cl_rw_side_slots[] = {
    {Py_tp_doc, "One side of an RWLock, with the interface of threading.Lock."},
    {Py_tp_dealloc, cl_rw_handle_dealloc},
    {Py_tp_repr, cl_rw_repr},
    {Py_tp_methods, cl_rw_side_methods},
    {Py_tp_getset, cl_rw_side_attributes},
    {Py_tp_members, cl_rw_side_members},
    {0, NULL},
};

static PyType_Spec cl_rwlock_spec = {
    .name = "contention_lab.locks.RWLock",
    .basicsize = sizeof(cl_rwlock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cl_rwlock_slots,
};

static PyType_Spec cl_rw_side_spec = {
    .name = "contention_lab.locks.RWLockSide",
    .basicsize = sizeof(cl_rw_handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = cl_rw_side_slots,
};

/* Adds RWLock to the module. -1: an exception. */
static int
cl_rwlock_add(PyObject *module)
{
    cl_rw_side_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &cl_rw_side_spec, NULL);
    if (cl_rw_side_type == NULL || cl_lock_type_add(module, "RWLock", &cl_rwlock_spec, NULL) < 0) {
        return -1;
    }
    cl_rwlock_type = (PyTypeObject *)PyObject_GetAttrString(module, "RWLock");
    return cl_rwlock_type == NULL ? -1 : 0;
}

#endif
