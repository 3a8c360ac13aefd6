/* A permit that somebody has: one hold of a semaphore, or of anything that Python code takes and gives back.
 * Which permit a release ends is decided in Python (capture/patches/permits.py); here it is timed.
 */
#ifndef CL_PERMIT_H
#define CL_PERMIT_H

#include "source.h"

typedef struct {
    PyObject_HEAD
    uint64_t start_ns;
    unsigned int party, site;
    int blocked; /* somebody was already waiting */
    PyObject *task; /* owned; None for a thread */
} cl_permit;

static PyTypeObject *cl_permit_type; /* kept */

static void
cl_permit_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((cl_permit *)object)->task);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

/* The calling thread's state if something is being recorded, else NULL. */
static cl_thread *
cl_recording_thread(void)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    return epoch == 0 ? NULL : cl_thread_get(epoch);
}

/* take(source, party, site, task, blocked, count): a permit that `party` (0: this thread) has from now on,
 * taken at `site` (0: here). blocked: somebody goes on waiting. count: it is an acquire that no wait has
 * counted. */
static PyObject *
cl_permit_take(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_lock *lock = nargs == 6 ? cl_as_ours(args[0]) : NULL;
    if (lock == NULL) {
        PyErr_SetString(PyExc_TypeError, "take() takes a lock of ours, party, site, task and two flags");
        return NULL;
    }
    unsigned long party = PyLong_AsUnsignedLong(args[1]), site = PyLong_AsUnsignedLong(args[2]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    cl_permit *permit = PyObject_New(cl_permit, cl_permit_type);
    if (permit == NULL) {
        return NULL;
    }
    cl_thread *thread = cl_recording_thread();
    int detailed = thread != NULL && cl_session.level >= CL_LEVEL_PROFILE;
    permit->party = party != 0 || thread == NULL ? (unsigned int)party : thread->id;
    permit->site = site == 0 && detailed ? cl_site_capture(thread->frames) : (unsigned int)site;
    permit->blocked = args[4] == Py_True;
    permit->task = Py_NewRef(args[3]);
    cl_block *block = thread == NULL || args[5] != Py_True
                          ? NULL
                          : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block != NULL) {
        cl_add(&block->value[CL_C_ACQUIRES], 1);
    }
    permit->start_ns = thread == NULL ? 0 : cl_now() | 1u;
    return (PyObject *)permit;
}

/* give(source, permit, end_ns, party, waiters, handed_off): that permit has been given back by `party`
 * (0: this thread). Recorded if it made somebody wait or the level is `trace`, counted in any case. */
static PyObject *
cl_permit_give(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_lock *lock = nargs == 6 ? cl_as_ours(args[0]) : NULL;
    if (lock == NULL || !Py_IS_TYPE(args[1], cl_permit_type)) {
        PyErr_SetString(PyExc_TypeError,
                        "give() takes a lock of ours, a permit, end, party, waiters and a flag");
        return NULL;
    }
    cl_permit *permit = (cl_permit *)args[1];
    unsigned long long end = PyLong_AsUnsignedLongLong(args[2]);
    unsigned long party = PyLong_AsUnsignedLong(args[3]), waiters = PyLong_AsUnsignedLong(args[4]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    cl_thread *thread = permit->start_ns == 0 ? NULL : cl_recording_thread();
    cl_block *block = thread == NULL || cl_session.level == CL_LEVEL_COUNTERS
                          ? NULL
                          : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) {
        Py_RETURN_NONE;
    }
    waiters = waiters == 0 && permit->blocked ? 1 : waiters;
    cl_hold_record hold = {
        .start_ns = permit->start_ns, .end_ns = end < permit->start_ns ? permit->start_ns : end,
        .lock = lock->id, .thread = permit->party, .site = permit->site, .waiters = (uint32_t)waiters,
        .release_thread = party != 0 ? (uint32_t)party : thread->id,
        .flags = (args[5] == Py_True ? CL_HOLD_HANDED_OFF : 0u)
                 | (waiters > 0 ? 0u : CL_HOLD_UNCONTENDED)};
    int watched = cl_watched(lock);
    hold.flags |= watched ? CL_HOLD_WATCHED : 0u;
    cl_count_hold(block, hold.end_ns - hold.start_ns);
    if (waiters > 0) {
        cl_add(&block->value[CL_C_BLOCKING_HOLDS], 1);
        hold.stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
    }
    if (waiters > 0 || watched || cl_session.level == CL_LEVEL_TRACE) {
        cl_thread_record(thread, CL_HOLDS, &hold, sizeof hold);
    }
    Py_RETURN_NONE;
}

static PyMemberDef cl_permit_members[] = {
    {"party", T_UINT, offsetof(cl_permit, party), READONLY, "Whose it is: a thread or a task."},
    {"site", T_UINT, offsetof(cl_permit, site), READONLY, "The frame that took it."},
    {"task", T_OBJECT, offsetof(cl_permit, task), READONLY, "The task, None for a thread."},
    {"start_ns", T_ULONGLONG, offsetof(cl_permit, start_ns), READONLY, "Since when; 0: not recorded."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot cl_permit_slots[] = {
    {Py_tp_doc, "One permit that somebody has; made by take()."},
    {Py_tp_dealloc, cl_permit_dealloc},
    {Py_tp_members, cl_permit_members},
    {0, NULL},
};

static PyType_Spec cl_permit_spec = {
    .name = "contention_lab.native._core.Permit",
    .basicsize = sizeof(cl_permit),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = cl_permit_slots,
};

static int
cl_permit_ready(PyObject *module)
{
    cl_permit_type = (PyTypeObject *)PyType_FromSpec(&cl_permit_spec);
    return cl_permit_type == NULL ? -1
                                  : PyModule_AddObjectRef(module, "Permit", (PyObject *)cl_permit_type);
}

#define CL_PERMIT_METHODS \
    {"take", (PyCFunction)(void (*)(void))cl_permit_take, METH_FASTCALL, \
     "take(source, party, site, task, blocked, count)\n--\n\nA permit that is out from now on."}, \
    {"give", (PyCFunction)(void (*)(void))cl_permit_give, METH_FASTCALL, \
     "give(source, permit, end_ns, party, waiters, handed_off)\n--\n\nThat permit was given back."}

#endif
