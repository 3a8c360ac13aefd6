/* A permit that somebody has: one hold of a semaphore, or of anything that Python code takes and gives back.
 * Which permit a release ends is decided in permits.h; here it is timed.
 */
#ifndef CL_PERMIT_H
#define CL_PERMIT_H

#include "source.h"

typedef struct {
    uint64_t start_ns; /* 0: not recorded */
    uint32_t party, site;
    int blocked;    /* somebody was already waiting */
    PyObject *task; /* owned; NULL for a thread */
} cl_permit;

typedef struct {
    PyObject_HEAD
    cl_permit permit;
} cl_permit_object;

static PyTypeObject *cl_permit_type; /* kept */

static void
cl_permit_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF((PyObject *)type);
}

/* The calling thread's state if something is being recorded, else NULL. */
static inline cl_thread *
cl_recording_thread(void)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    return epoch == 0 ? NULL : cl_thread_get(epoch);
}

/* A permit that `party` (0: this thread) has from now on, taken at `site` (0: here). count: it is an acquire
 * that no wait has counted. `thread`: the calling one's state, NULL if nothing is recorded. */
static void
cl_permit_begin(cl_permit *permit, cl_lock *lock, cl_thread *thread, uint32_t party, uint32_t site,
                int count)
{
    memset(permit, 0, sizeof *permit);
    permit->party = party;
    permit->site = site;
    if (thread == NULL) {
        return;
    }
    if (party == 0) {
        permit->party = thread->id;
    }
    if (site == 0 && cl_session.level >= CL_LEVEL_PROFILE) {
        permit->site = cl_site_capture(thread->frames);
    }
    cl_block *block = count ? cl_block_get(thread, lock->id, lock, cl_lock_register) : NULL;
    if (block != NULL) {
        cl_add(&block->value[CL_C_ACQUIRES], 1);
    }
    permit->start_ns = cl_now() | 1u;
}

/* It has been given back by `party` (0: this thread). Recorded if it made somebody wait or the level is
 * `trace`, counted in any case. */
static void
cl_permit_end(const cl_permit *permit, cl_lock *lock, cl_thread *thread, uint64_t end_ns, uint32_t party,
              uint32_t waiters, int handed_off)
{
    cl_block *block = thread == NULL || permit->start_ns == 0 || cl_session.level == CL_LEVEL_COUNTERS
                          ? NULL
                          : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) {
        return;
    }
    waiters = waiters == 0 && permit->blocked ? 1 : waiters;
    cl_hold_record hold = {
        .start_ns = permit->start_ns, .end_ns = end_ns < permit->start_ns ? permit->start_ns : end_ns,
        .lock = lock->id, .thread = permit->party, .site = permit->site, .waiters = waiters,
        .release_thread = party != 0 ? party : thread->id,
        .flags = (handed_off ? CL_HOLD_HANDED_OFF : 0u) | (waiters > 0 ? 0u : CL_HOLD_UNCONTENDED)};
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
}

/* take(source): a permit that this thread has from now on. */
static PyObject *
cl_permit_take(PyObject *module, PyObject *object)
{
    (void)module;
    cl_lock *lock = cl_as_ours(object);
    if (lock == NULL) {
        PyErr_SetString(PyExc_TypeError, "take() takes a lock of ours");
        return NULL;
    }
    cl_permit_object *permit = PyObject_New(cl_permit_object, cl_permit_type);
    if (permit != NULL) {
        cl_permit_begin(&permit->permit, lock, cl_recording_thread(), 0, 0, 1);
    }
    return (PyObject *)permit;
}

/* give(source, permit): this thread has given that permit back. */
static PyObject *
cl_permit_give(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    cl_lock *lock = nargs == 2 ? cl_as_ours(args[0]) : NULL;
    if (lock == NULL || !Py_IS_TYPE(args[1], cl_permit_type)) {
        PyErr_SetString(PyExc_TypeError, "give() takes a lock of ours and a permit");
        return NULL;
    }
    cl_permit_end(&((cl_permit_object *)args[1])->permit, lock, cl_recording_thread(), cl_now(), 0, 0, 0);
    Py_RETURN_NONE;
}

static PyType_Slot cl_permit_slots[] = {
    {Py_tp_doc, "One permit that somebody has; made by take()."},
    {Py_tp_dealloc, cl_permit_dealloc},
    {0, NULL},
};

static PyType_Spec cl_permit_spec = {
    .name = "contention_lab.native._core.Permit",
    .basicsize = sizeof(cl_permit_object),
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
    {"take", cl_permit_take, METH_O, "take(source)\n--\n\nA permit that this thread has from now on."}, \
    {"give", (PyCFunction)(void (*)(void))cl_permit_give, METH_FASTCALL, \
     "give(source, permit)\n--\n\nThis thread has given that permit back."}

#endif
