/* Waits of asyncio tasks, and the permits that tasks take and give back.
 *
 * The wrappers in capture/patches/task_*.py call in here once for an uncontended acquire and once for a
 * release; a wait is an object from its beginning to its end, because a task that waits does not keep its
 * thread.
 */
#ifndef CL_TASK_WAIT_H
#define CL_TASK_WAIT_H

#include "tasks.h"

typedef struct {
    PyObject_HEAD
    PyObject *source;    /* owned: what is waited for */
    cl_permits *permits; /* owned: if that is a permit; else NULL */
    cl_task *task;       /* owned: who waits; NULL for a thread */
    uint32_t epoch;
    uint32_t open;   /* see open_waits.h */
    uint64_t end_ns; /* when it was over, if it was before it is recorded; else 0 */
    cl_wait_record record;
} cl_task_wait;

static PyTypeObject *cl_task_wait_type; /* kept */

/* A wait of the task that runs for `source`, as coordination. NULL: an exception. */
static cl_task_wait *
cl_task_wait_make(PyObject *source, cl_task *task, uint32_t waiters)
{
    cl_task_wait *self = PyObject_New(cl_task_wait, cl_task_wait_type);
    if (self == NULL) {
        return NULL;
    }
    cl_thread *thread = cl_recording_thread();
    self->source = Py_NewRef(source);
    self->permits = NULL;
    self->task = (cl_task *)Py_XNewRef((PyObject *)task);
    self->epoch = thread == NULL ? 0 : thread->epoch;
    self->open = 0;
    self->end_ns = 0;
    memset(&self->record, 0, sizeof self->record);
    if (thread == NULL) {
        return self;
    }
    self->record.kind = CL_COORDINATION;
    self->record.thread = task == NULL ? thread->id : task->party;
    self->record.waiters = waiters;
    self->record.start_ns = cl_now() | 1u;
    if (task != NULL) {
        task->is_late = 0;
        self->record.stack = task->called_stack;
    }
    if (self->record.stack == 0 && cl_session.level >= CL_LEVEL_PROFILE) {
        self->record.stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
    }
    self->record.lock = ((cl_lock *)source)->id;
    if (task != NULL) {
        (void)cl_block_get(thread, self->record.lock, (cl_lock *)source, cl_lock_register);
        self->open = cl_open_wait_begin(self->epoch, &self->record);
    }
    return self;
}

/* A wait for a permit that somebody has is contention, and he is the holder; if nobody has one, it may be
 * coordination. */
static void
cl_task_wait_for_permit(cl_task_wait *self, cl_permits *permits)
{
    self->permits = (cl_permits *)Py_NewRef((PyObject *)permits);
    if (!permits->may_be_signal || permits->count > 0) {
        cl_permit held = {0};
        PyObject *task = NULL;
        self->record.kind = CL_CONTENTION;
        permits->blocked_ns = self->record.start_ns;
        if (cl_permits_other(permits, self->record.thread, &held, &task)) {
            self->record.holder = held.party;
            self->record.holder_site = held.site;
        }
        cl_open_wait_for(self->open, self->record.holder);
        if (task != NULL) {
            self->record.holder_stack = cl_task_stack(cl_recording_thread(), (cl_task *)task);
            Py_DECREF(task);
        }
    }
    __atomic_fetch_add(&permits->waiting, 1, __ATOMIC_RELAXED);
    cl_permits_publish(permits);
}

/* Records it; a wait of another recording counts for nothing. */
static void
cl_task_wait_record(cl_task_wait *self, int outcome)
{
    cl_thread *thread = cl_recording_thread();
    cl_open_wait_end(self->open);
    self->open = 0;
    if (self->permits != NULL) {
        CL_BEGIN_CRITICAL(self->permits);
        if (self->permits->beside.epoch == self->epoch && self->permits->waiting > 0) {
            __atomic_fetch_sub(&self->permits->waiting, 1, __ATOMIC_RELAXED);
        }
        CL_END_CRITICAL();
    }
    if (thread == NULL || thread->epoch != self->epoch) {
        return;
    }
    self->record.outcome = (uint8_t)outcome;
    self->record.end_ns = self->end_ns != 0 ? self->end_ns : cl_now();
    cl_emit(thread, (cl_lock *)self->source, &self->record);
}

/* task_wait(source, waiters, awaited_stack=0, flags=0): the task that runs begins to wait; what the task
 * awaits that would have to end that, and flags of the record. */
static PyObject *
cl_task_wait_begin(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_lock *source = nargs >= 2 && nargs <= 4 ? cl_as_ours(args[0]) : NULL;
    unsigned long waiters = source == NULL ? 0 : PyLong_AsUnsignedLong(args[1]);
    unsigned long awaited = source == NULL || nargs < 3 ? 0 : PyLong_AsUnsignedLong(args[2]);
    unsigned long flags = source == NULL || nargs < 4 ? 0 : PyLong_AsUnsignedLong(args[3]);
    cl_task *task;
    if (source == NULL || PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "task_wait() takes a lock of ours and numbers");
        return NULL;
    }
    if (cl_task_current(&task) < 0) {
        return NULL;
    }
    cl_task_wait *self = cl_task_wait_make(args[0], task, (uint32_t)waiters);
    Py_XDECREF((PyObject *)task);
    if (self != NULL) {
        self->record.awaited_stack = (uint32_t)awaited;
        self->record.flags = (uint16_t)flags;
    }
    return (PyObject *)self;
}

/* The arguments of the functions below: a class of permits and something that has them. 0: nothing is
 * recorded; -1: an exception; else references to the permits and to the task that runs, or NULL for that. */
static inline int
cl_task_permits(PyObject *const *args, Py_ssize_t nargs, int acquires, cl_permits **permits,
                cl_task **task)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "a class of permits and something that has them");
        return -1;
    }
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0) {
        return 0;
    }
    *permits = cl_permits_find(args[0], args[1]);
    if (*permits == NULL) {
        return -1;
    }
    if (cl_task_current(task) < 0) {
        Py_CLEAR(*permits);
        return -1;
    }
    if (acquires && *task != NULL && (*task)->coordination != NULL
        && Py_IS_TYPE((*task)->coordination, cl_task_wait_type)) {
        cl_task_wait *wait = (cl_task_wait *)(*task)->coordination;
        if (wait->source == (*permits)->source && wait->end_ns == 0) {
            wait->end_ns = cl_now() | 1u; /* a condition takes its lock again */
        }
    }
    return 1;
}

static inline void
cl_task_got(cl_permits *permits, cl_task *task, int count)
{
    cl_permits_add(permits, cl_recording_thread(), (PyObject *)task, task == NULL ? 0 : task->party,
                   task == NULL ? 0 : task->called_site, count);
}

/* task_took(cls, thing): the task that runs has got a permit without a wait. */
static PyObject *
cl_task_took(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_permits *permits;
    cl_task *task;
    int active = cl_task_permits(args, nargs, 1, &permits, &task);
    if (active > 0) {
        cl_task_got(permits, task, 1);
        Py_DECREF((PyObject *)permits);
        Py_XDECREF((PyObject *)task);
    }
    return active < 0 ? NULL : Py_NewRef(Py_None);
}

/* task_gives(cls, thing): the task that runs is about to give a permit back. */
static PyObject *
cl_task_gives(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_permits *permits;
    cl_task *task;
    int active = cl_task_permits(args, nargs, 0, &permits, &task);
    if (active > 0) {
        cl_thread *thread = cl_recording_thread();
        if (permits->waiting > 0 && permits->count == 0 && thread != NULL
            && cl_session.level >= CL_LEVEL_PROFILE) {
            permits->waker = task == NULL ? thread->id : task->party;
            permits->waker_stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
        }
        cl_permits_remove(permits, thread, task == NULL ? 0 : task->party, cl_now());
        Py_DECREF((PyObject *)permits);
        Py_XDECREF((PyObject *)task);
    }
    return active < 0 ? NULL : Py_NewRef(Py_None);
}

/* task_blocks(cls, thing): the task that runs begins to wait for a permit; None if nothing is recorded. */
static PyObject *
cl_task_blocks(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_permits *permits;
    cl_task *task;
    int active = cl_task_permits(args, nargs, 1, &permits, &task);
    if (active <= 0) {
        return active < 0 ? NULL : Py_NewRef(Py_None);
    }
    cl_task_wait *self = cl_task_wait_make(permits->source, task, permits->waiting);
    if (self != NULL) {
        cl_task_wait_for_permit(self, permits);
    }
    Py_DECREF((PyObject *)permits);
    Py_XDECREF((PyObject *)task);
    return (PyObject *)self;
}

/* ended(party=0, stack=0, wake=0): it has got what it waited for; who woke it, if it was coordination, and
 * the number of that wake-up. */
static PyObject *
cl_task_wait_ended(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    cl_task_wait *self = (cl_task_wait *)object;
    unsigned long party = nargs == 3 ? PyLong_AsUnsignedLong(args[0]) : 0;
    unsigned long stack = nargs == 3 ? PyLong_AsUnsignedLong(args[1]) : 0;
    unsigned long wake = nargs == 3 ? PyLong_AsUnsignedLong(args[2]) : 0;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (self->permits != NULL) {
        party = self->permits->waker;
        stack = self->permits->waker_stack;
    }
    if (self->record.kind == CL_COORDINATION) {
        self->record.holder = (uint32_t)party;
        self->record.holder_stack = (uint32_t)stack;
        self->record.spins = (uint32_t)wake;
    }
    cl_task_wait_record(self, CL_ACQUIRED);
    if (self->permits != NULL && cl_recording_thread() != NULL) {
        int stale = self->permits->beside.epoch != atomic_load_explicit(&cl_epoch, memory_order_relaxed);
        if (!stale) {
            cl_task_got(self->permits, self->task, self->record.kind == CL_COORDINATION);
        }
    }
    Py_RETURN_NONE;
}

/* failed(error): an exception ended it. */
static PyObject *
cl_task_wait_failed(PyObject *object, PyObject *error)
{
    cl_task_wait *self = (cl_task_wait *)object;
    long outcome = CL_INTERRUPTED;
    if (self->task != NULL) {
        PyObject *told = PyObject_CallMethod((PyObject *)self->task, "outcome", "O", error);
        outcome = told == NULL ? -1 : PyLong_AsLong(told);
        Py_XDECREF(told);
        if (outcome == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    cl_task_wait_record(self, outcome >= CL_ACQUIRED && outcome <= CL_CANCELLED ? (int)outcome
                                                                               : CL_INTERRUPTED);
    Py_RETURN_NONE;
}

static void
cl_task_wait_dealloc(PyObject *object)
{
    cl_task_wait *self = (cl_task_wait *)object;
    PyTypeObject *type = Py_TYPE(object);
    cl_open_wait_end(self->open);
    Py_DECREF(self->source);
    Py_XDECREF((PyObject *)self->permits);
    Py_XDECREF((PyObject *)self->task);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef cl_task_wait_methods[] = {
    {"ended", (PyCFunction)(void (*)(void))cl_task_wait_ended, METH_FASTCALL,
     "ended(party=0, stack=0, wake=0)\n--\n\nIt got what it waited for; by whom it was woken."},
    {"failed", cl_task_wait_failed, METH_O, "failed(error)\n--\n\nAn exception ended it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cl_task_wait_slots[] = {
    {Py_tp_doc, "One wait of a task; made by task_wait() and task_blocks()."},
    {Py_tp_dealloc, cl_task_wait_dealloc},
    {Py_tp_methods, cl_task_wait_methods},
    {0, NULL},
};

static PyType_Spec cl_task_wait_spec = {
    .name = "contention_lab.native._core.TaskWait",
    .basicsize = sizeof(cl_task_wait),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = cl_task_wait_slots,
};

#define CL_TASK_METHODS \
    {"use_asyncio", cl_use_asyncio, METH_VARARGS, \
     "use_asyncio(cls, running_loop, current, adopted)\n--\n\nHow to find the task that runs."}, \
    {"current_task", cl_current_task, METH_NOARGS, \
     "current_task()\n--\n\nThe record of the task that runs, None outside of one."}, \
    {"task_wait", (PyCFunction)(void (*)(void))cl_task_wait_begin, METH_FASTCALL, \
     "task_wait(source, waiters, awaited_stack=0, flags=0)\n--\n\nThe task that runs begins to wait."}, \
    {"task_took", (PyCFunction)(void (*)(void))cl_task_took, METH_FASTCALL, \
     "task_took(cls, thing)\n--\n\nThe task that runs has got a permit without a wait."}, \
    {"task_gives", (PyCFunction)(void (*)(void))cl_task_gives, METH_FASTCALL, \
     "task_gives(cls, thing)\n--\n\nThe task that runs is about to give a permit back."}, \
    {"task_blocks", (PyCFunction)(void (*)(void))cl_task_blocks, METH_FASTCALL, \
     "task_blocks(cls, thing)\n--\n\nThe task that runs begins to wait for a permit."}

#endif
