/* The re-entrant lock: a Mutex that knows its owner and how often he took it.
 *
 * A hold lasts from the outermost acquire to the outermost release; what is nested is only counted.
 * `depth` is the owner's. `owner_thread` is written by the owner alone: any other thread that compares it
 * with its own identity reads either 0 or somebody else, whatever the timing.
 */
#ifndef CL_RLOCK_H
#define CL_RLOCK_H

#include "lock_type.h"

typedef struct {
    cl_lock lock; /* first: the methods of cl_lock apply */
    _Atomic unsigned long owner_thread; /* threading.get_ident(), 0 free */
    unsigned long depth;
} cl_rlock;

static inline int
cl_rlock_is_mine(cl_rlock *self)
{
    return atomic_load_explicit(&self->owner_thread, memory_order_relaxed)
           == PyThread_get_thread_ident();
}

static void
cl_rlock_count_recursion(cl_rlock *self)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_get(epoch);
    cl_block *block = thread == NULL ? NULL
                                     : cl_block_get(thread, self->lock.id, self, cl_lock_register);
    if (block != NULL) {
        cl_add(&block->value[CL_C_RECURSIONS], 1);
    }
}

static inline void
cl_rlock_own(cl_rlock *self, unsigned long depth)
{
    self->depth = depth;
    atomic_store_explicit(&self->owner_thread, PyThread_get_thread_ident(), memory_order_relaxed);
}

/* After an acquire attempt of this thread that was not nested. */
static inline PyObject *
cl_rlock_acquired(cl_rlock *self, int result)
{
    if (result > 0) {
        cl_rlock_own(self, 1);
    }
    return result < 0 ? NULL : PyBool_FromLong(result);
}

static PyObject *
cl_rlock_nested(cl_rlock *self)
{
    if (self->depth == ULONG_MAX) {
        PyErr_SetString(PyExc_OverflowError, "Internal lock count overflowed");
        return NULL;
    }
    self->depth++;
    cl_rlock_count_recursion(self);
    Py_RETURN_TRUE;
}

static PyObject *
cl_rlock_acquire(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    cl_rlock *self = (cl_rlock *)object;
    int blocking;
    uint64_t deadline;
    if (cl_lock_parse_acquire(args, count, kwnames, &blocking, &deadline) < 0) {
        return NULL;
    }
    return cl_rlock_is_mine(self)
               ? cl_rlock_nested(self)
               : cl_rlock_acquired(self, cl_lock_acquire(&self->lock, blocking, deadline));
}

static PyObject *
cl_rlock_enter(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (__builtin_expect(count != 0 || kwnames != NULL, 0)) {
        return cl_rlock_acquire(object, args, count, kwnames);
    }
    cl_rlock *self = (cl_rlock *)object;
    return cl_rlock_is_mine(self)
               ? cl_rlock_nested(self)
               : cl_rlock_acquired(self, cl_lock_acquire(&self->lock, CL_INTERRUPTIBLE, CL_FOREVER));
}

static PyObject *
cl_rlock_release(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_rlock *self = (cl_rlock *)object;
    if (!cl_rlock_is_mine(self) || self->depth == 0) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return NULL;
    }
    if (--self->depth == 0) {
        atomic_store_explicit(&self->owner_thread, 0, memory_order_relaxed);
        cl_lock_release(&self->lock);
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_rlock_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    return cl_rlock_release(object, NULL);
}

/* For threading.Condition: gives the lock up at any depth; what it returns goes to
 * _acquire_restore(). */
static PyObject *
cl_rlock_release_save(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_rlock *self = (cl_rlock *)object;
    if (self->depth == 0 || atomic_load_explicit(&self->lock.state, memory_order_relaxed) == CL_FREE) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return NULL;
    }
    unsigned long depth = self->depth;
    unsigned long owner = atomic_load_explicit(&self->owner_thread, memory_order_relaxed);
    PyObject *saved = Py_BuildValue("(kk)", depth, owner);
    if (saved != NULL) {
        self->depth = 0;
        atomic_store_explicit(&self->owner_thread, 0, memory_order_relaxed);
        cl_lock_release(&self->lock);
    }
    return saved;
}

static PyObject *
cl_rlock_acquire_restore(PyObject *object, PyObject *saved)
{
    cl_rlock *self = (cl_rlock *)object;
    unsigned long depth, owner;
    PyObject *args = PyTuple_Pack(1, saved);
    int is_parsed = args != NULL && PyArg_ParseTuple(args, "(kk):_acquire_restore", &depth, &owner);
    Py_XDECREF(args);
    if (!is_parsed) {
        return NULL;
    }
    /* As CPython's own, this wait cannot be interrupted: the caller counts on owning the lock. */
    cl_lock_acquire(&self->lock, CL_UNINTERRUPTED, CL_FOREVER);
    self->depth = depth;
    atomic_store_explicit(&self->owner_thread, owner, memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyObject *
cl_rlock_is_owned(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_rlock *self = (cl_rlock *)object;
    return PyBool_FromLong(cl_rlock_is_mine(self));
}

static PyObject *
cl_rlock_recursion_count(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_rlock *self = (cl_rlock *)object;
    return PyLong_FromUnsignedLong(cl_rlock_is_mine(self) ? self->depth : 0);
}

static PyObject *
cl_rlock_at_fork_reinit(PyObject *object, PyObject *unused)
{
    cl_rlock *self = (cl_rlock *)object;
    self->depth = 0;
    atomic_store_explicit(&self->owner_thread, 0, memory_order_relaxed);
    return cl_lock_at_fork_reinit(object, unused);
}

static PyObject *
cl_rlock_repr(PyObject *object)
{
    cl_rlock *self = (cl_rlock *)object;
    unsigned long owner = atomic_load_explicit(&self->owner_thread, memory_order_relaxed);
    return PyUnicode_FromFormat("<%s %s object owner=%lu count=%lu at %p>",
                                self->depth == 0 ? "unlocked" : "locked", Py_TYPE(object)->tp_name,
                                owner, self->depth, object);
}

/* Like CPython's own, it takes any arguments and ignores them (deprecated there since 3.14). */
static PyObject *
cl_rlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    cl_rlock *self = (cl_rlock *)type->tp_alloc(type, 0);
    if (self != NULL) {
        cl_lock_init(&self->lock, CL_KIND_MUTEX, NULL);
        self->lock.label = CL_LABEL_RLOCK;
    }
    return (PyObject *)self;
}

#endif
