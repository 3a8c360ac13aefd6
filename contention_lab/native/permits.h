/* Who has the permits of a semaphore: each permit is a hold of its own; a lock has one.
 *
 * State belongs to the hold, not to the semaphore: a permit is given back by whoever took it if he has one,
 * and otherwise (a hand-off) it is the oldest that ends. Nothing here knows what a semaphore of `threading`,
 * `asyncio` or `multiprocessing` is made of. Without a GIL, a critical section keeps the list whole.
 */
#ifndef CL_PERMITS_H
#define CL_PERMITS_H

#include "open_waits.h"
#include "task_held.h"

typedef struct {
    cl_beside beside;
    PyObject *source;    /* owned: the semaphore's entry in the trace */
    PyObject *waits;     /* owned: threads that wait, a dict; NULL: they are counted */
    uint32_t waiting;    /* tasks that wait */
    uint32_t count, room;
    cl_permit *held;     /* in the order they were taken */
    unsigned long long blocked_ns; /* when somebody last began to wait: all that were out made him wait */
    uint32_t waker, waker_stack;   /* who last gave somebody a permit that nobody had */
    char may_be_signal;  /* waiting while nobody has a permit is coordination */
    char shared;         /* threads of other processes may wait for one */
    char nests;          /* whoever has one may take it again */
    char silent;         /* not recorded: it stands for something else */
} cl_permits;

static PyTypeObject *cl_permits_type; /* kept */

static inline cl_lock *
cl_permits_source(cl_permits *self)
{
    return (cl_lock *)self->source;
}

static inline uint32_t
cl_permits_waiting(cl_permits *self)
{
    return __atomic_load_n(&self->waiting, __ATOMIC_RELAXED)
           + (self->waits == NULL ? 0 : (uint32_t)PyDict_GET_SIZE(self->waits));
}

/* The permits of `thing`, see cl_beside_find(). */
static inline cl_permits *
cl_permits_find(PyObject *cls, PyObject *thing)
{
    cl_beside *record = cl_beside_find(cls, thing);
    if (record != NULL && !PyObject_TypeCheck((PyObject *)record, cl_permits_type)) {
        PyErr_SetString(PyExc_TypeError, "not a class of permits");
        Py_CLEAR(record);
    }
    if (record != NULL && ((cl_permits *)record)->source == NULL) {
        PyErr_SetString(PyExc_TypeError, "these permits have no source");
        Py_CLEAR(record);
    }
    return (cl_permits *)record;
}

/* Notes that a party has one more, from now on: `task` (a record of tasks.h, with its party and the site of
 * its call if that is not here), or this thread. */
static void
cl_permits_add(cl_permits *self, cl_thread *thread, PyObject *task, uint32_t party, uint32_t site,
               int count)
{
    cl_permit permit;
    cl_permit_begin(&permit, cl_permits_source(self), thread, party, site, count);
    permit.task = task;
    permit.shared = self->shared;
    if (task != NULL && thread != NULL && !self->may_be_signal) {
        cl_task_held_add((cl_task_held *)task, thread, cl_permits_source(self), party, permit.site);
    }
    CL_BEGIN_CRITICAL(self);
    permit.blocked = cl_permits_waiting(self) > 0;
    if (self->count == self->room) {
        uint32_t room = self->room == 0 ? 2 : 2 * self->room;
        cl_permit *held = realloc(self->held, room * sizeof *held);
        if (held != NULL) {
            self->held = held;
            self->room = room;
        }
    }
    if (self->count < self->room) { /* else: no memory to record with */
        Py_XINCREF(task);
        self->held[self->count++] = permit;
    }
    CL_END_CRITICAL();
}

/* Takes out what a release by `party` ends: its last, else the oldest. 0: nobody is known to have one. */
static int
cl_permits_take_out(cl_permits *self, uint32_t party, cl_permit *permit, uint32_t *waiting)
{
    int found;
    CL_BEGIN_CRITICAL(self);
    found = self->count > 0;
    if (found) {
        uint32_t at = self->count;
        while (at > 0 && self->held[at - 1].party != party) {
            at--;
        }
        at = at == 0 ? 0 : at - 1;
        *permit = self->held[at];
        self->count--;
        memmove(&self->held[at], &self->held[at + 1], (self->count - at) * sizeof *self->held);
        *waiting = cl_permits_waiting(self);
    }
    CL_END_CRITICAL();
    return found;
}

/* Publishes who has permits, for whoever begins to wait for one now. */
static void
cl_permits_publish(cl_permits *self)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_out *out = epoch == 0 ? NULL : cl_out_begin(epoch, cl_permits_source(self)->id);
    if (out == NULL) {
        return;
    }
    uint32_t count;
    CL_BEGIN_CRITICAL(self);
    count = self->count;
    for (uint32_t i = 0; i < count && i < CL_MOST_OUT; i++) {
        const cl_permit *held = &self->held[i];
        atomic_store_explicit(&out->what[i], (uint64_t)held->party << 32 | held->site,
                              memory_order_relaxed);
        atomic_store_explicit(&out->since[i], held->start_ns, memory_order_relaxed);
    }
    CL_END_CRITICAL();
    cl_out_end(out, count);
}

/* Notes that `party` (0: this thread) gave a permit back at `end_ns`; one that nobody took is none. */
static void
cl_permits_remove(cl_permits *self, cl_thread *thread, uint32_t party, uint64_t end_ns)
{
    cl_permit permit;
    uint32_t waiting = 0;
    party = party == 0 && thread != NULL ? thread->id : party;
    if (!cl_permits_take_out(self, party, &permit, &waiting)) {
        return;
    }
    if (waiting == 0 && permit.start_ns <= self->blocked_ns) {
        waiting = 1;
    }
    if (permit.task != NULL && !self->may_be_signal) {
        cl_task_held_remove((cl_task_held *)permit.task, cl_permits_source(self)->id);
        if (permit.party != party && thread != NULL) {
            cl_held_hand_off(thread, cl_permits_source(self));
        }
    }
    cl_permit_end(&permit, cl_permits_source(self), thread, end_ns, party, waiting, permit.party != party);
    Py_XDECREF(permit.task);
}

/* Copies the oldest permit that is not `party`'s, without a reference to its task unless `task` is given. */
static int
cl_permits_other(cl_permits *self, uint32_t party, cl_permit *permit, PyObject **task)
{
    int found = 0;
    CL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; i < self->count && !found; i++) {
        if (self->held[i].party != party) {
            found = 1;
            *permit = self->held[i];
            if (task != NULL) {
                *task = Py_XNewRef(permit->task);
            }
        }
    }
    CL_END_CRITICAL();
    return found;
}

static void
cl_permits_drop(cl_permits *self)
{
    cl_permit permit;
    uint32_t waiting;
    while (cl_permits_take_out(self, 0, &permit, &waiting)) {
        Py_XDECREF(permit.task);
    }
}

static PyObject *
cl_permits_forget(PyObject *object, PyObject *unused)
{
    cl_permits *self = (cl_permits *)object;
    cl_permits_drop(self);
    self->waiting = 0;
    self->blocked_ns = 0;
    self->waker = self->waker_stack = 0;
    return cl_beside_forget(object, unused);
}

static PyObject *
cl_permits_clear_held(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_permits_drop((cl_permits *)object);
    Py_RETURN_NONE;
}

static PyObject *
cl_permits_take(PyObject *object, PyObject *count)
{
    cl_permits *self = (cl_permits *)object;
    if (self->source != NULL) {
        cl_permits_add(self, cl_recording_thread(), NULL, 0, 0, count == Py_True);
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_permits_give(PyObject *object, PyObject *end)
{
    cl_permits *self = (cl_permits *)object;
    unsigned long long end_ns = PyLong_AsUnsignedLongLong(end);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (self->source != NULL) {
        cl_permits_remove(self, cl_recording_thread(), 0, end_ns);
    }
    Py_RETURN_NONE;
}

static PyObject *
cl_permits_others(PyObject *object, PyObject *unused)
{
    (void)unused;
    cl_permits *self = (cl_permits *)object;
    cl_permit permit = {0};
    cl_thread *thread = cl_recording_thread();
    if (!cl_permits_other(self, thread == NULL ? 0 : thread->id, &permit, NULL)
        && cl_permits_other(self, 0, &permit, NULL)) {
        permit.party = 0; /* all that are out are this thread's own */
    }
    cl_permits_publish(self);
    return Py_BuildValue("II", permit.party, permit.site);
}

/* Since when a party has the permit that it took last; 0 if it has none. */
static PyObject *
cl_permits_since(PyObject *object, PyObject *party)
{
    cl_permits *self = (cl_permits *)object;
    unsigned long long start = 0;
    unsigned long id = PyLong_AsUnsignedLong(party);
    if (PyErr_Occurred()) {
        return NULL;
    }
    CL_BEGIN_CRITICAL(self);
    for (uint32_t at = self->count; at > 0 && start == 0; at--) {
        start = self->held[at - 1].party == id ? self->held[at - 1].start_ns : 0;
    }
    CL_END_CRITICAL();
    return PyLong_FromUnsignedLongLong(start);
}

static PyObject *
cl_permits_get_held(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((cl_permits *)object)->count);
}

static PyObject *
cl_permits_get_source(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *source = ((cl_permits *)object)->source;
    return Py_NewRef(source == NULL ? Py_None : source);
}

static int
cl_permits_set_source(PyObject *object, PyObject *source, void *unused)
{
    (void)unused;
    cl_permits *self = (cl_permits *)object;
    if (source == NULL || cl_as_ours(source) == NULL || self->source != NULL) {
        PyErr_SetString(PyExc_TypeError, "a source is one of ours, and set once");
        return -1;
    }
    self->source = Py_NewRef(source);
    return 0;
}

static int
cl_permits_traverse(PyObject *object, visitproc visit, void *arg)
{
    cl_permits *self = (cl_permits *)object;
    Py_VISIT(self->source);
    Py_VISIT(self->waits);
    for (uint32_t i = 0; i < self->count; i++) {
        Py_VISIT(self->held[i].task);
    }
    return cl_beside_traverse(object, visit, arg);
}

static int
cl_permits_clear(PyObject *object)
{
    cl_permits *self = (cl_permits *)object;
    cl_permits_drop(self);
    Py_CLEAR(self->waits);
    return cl_beside_clear(object);
}

static void
cl_permits_dealloc(PyObject *object)
{
    cl_permits *self = (cl_permits *)object;
    PyObject_GC_UnTrack(object);
    cl_permits_drop(self);
    free(self->held);
    Py_CLEAR(self->waits);
    Py_CLEAR(self->source);
    cl_beside_dealloc(object);
}

static PyMemberDef cl_permits_members[] = {
    {"waits", T_OBJECT_EX, offsetof(cl_permits, waits), 0, "A dict of the threads that wait for one."},
    {"blocked_ns", T_ULONGLONG, offsetof(cl_permits, blocked_ns), 0, "When somebody last began to wait."},
    {"may_be_signal", T_BOOL, offsetof(cl_permits, may_be_signal), 0, "It may be used as a signal."},
    {"shared", T_BOOL, offsetof(cl_permits, shared), 0, "Threads of other processes may wait for one."},
    {"nests", T_BOOL, offsetof(cl_permits, nests), 0, "Whoever has one may take it again."},
    {"silent", T_BOOL, offsetof(cl_permits, silent), 0, "It is not recorded."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef cl_permits_attributes[] = {
    {"source", cl_permits_get_source, cl_permits_set_source, "Its entry in the trace.", NULL},
    {"held", cl_permits_get_held, NULL, "How many permits are out, as far as that is known.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef cl_permits_methods[] = {
    {"forget", cl_permits_forget, METH_NOARGS,
     "forget()\n--\n\nBegin anew in this recording: nobody is known to have a permit."},
    {"drop", cl_permits_clear_held, METH_NOARGS, "drop()\n--\n\nNobody has a permit any more."},
    {"take", cl_permits_take, METH_O,
     "take(count)\n--\n\nThis thread has a permit from now on; count: no wait has counted that."},
    {"give", cl_permits_give, METH_O, "give(end_ns)\n--\n\nThis thread gave a permit back."},
    {"others", cl_permits_others, METH_NOARGS,
     "others()\n--\n\nParty and site of the oldest permit that is not this thread's; if all are, 0 and the\n"
     "site of its oldest, and zeros if none is out."},
    {"since", cl_permits_since, METH_O,
     "since(party)\n--\n\nSince when it has the permit that it took last; 0 if it has none."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cl_permits_slots[] = {
    {Py_tp_doc, "Permits(thing)\n--\n\nWho has the permits of a semaphore."},
    {Py_tp_dealloc, cl_permits_dealloc},
    {Py_tp_traverse, cl_permits_traverse},
    {Py_tp_clear, cl_permits_clear},
    {Py_tp_members, cl_permits_members},
    {Py_tp_getset, cl_permits_attributes},
    {Py_tp_methods, cl_permits_methods},
    {0, NULL},
};

static PyType_Spec cl_permits_spec = {
    .name = "contention_lab.native._core.Permits",
    .basicsize = sizeof(cl_permits),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = cl_permits_slots,
};

#endif
