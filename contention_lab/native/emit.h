/* Events whose times Python code took itself: asyncio tasks, semaphore permits, other processes' locks.
 *
 * They go through the calling thread's ring like any other. A task is a party of its own, with an id from
 * the same numbers as threads. Counters are kept for the calling thread.
 */
#ifndef CL_EMIT_H
#define CL_EMIT_H

#include "party_names.h"
#include "permit.h"

static PyObject *
cl_emit_now(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int active = atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0;
    return PyLong_FromUnsignedLongLong(active ? cl_now() | 1u : 0);
}

static PyObject *
cl_emit_stack(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_thread *thread = cl_recording_thread();
    int detailed = thread != NULL && cl_session.level >= CL_LEVEL_PROFILE;
    return PyLong_FromUnsignedLong(
        detailed ? cl_stack_capture(thread->frames, cl_session.stack_depth) : 0);
}

static PyObject *
cl_emit_stack_of(PyObject *module, PyObject *party)
{
    (void)module;
    unsigned long id = PyLong_AsUnsignedLong(party);
    if (PyErr_Occurred()) {
        return NULL;
    }
    cl_thread *thread = cl_recording_thread();
    int detailed = thread != NULL && cl_session.level >= CL_LEVEL_PROFILE;
    return PyLong_FromUnsignedLong(
        detailed ? cl_holder_stack((uint32_t)id, thread->frames, cl_session.stack_depth) : 0);
}

/* intern_stack(places): of (code object, byte offset of the instruction) pairs, innermost first. */
static PyObject *
cl_emit_intern_stack(PyObject *module, PyObject *places)
{
    (void)module;
    cl_thread *thread = cl_recording_thread();
    if (!PyList_CheckExact(places)) {
        PyErr_SetString(PyExc_TypeError, "intern_stack() takes a list of (code, lasti)");
        return NULL;
    }
    if (thread == NULL || cl_session.level < CL_LEVEL_PROFILE) {
        return PyLong_FromLong(0);
    }
    cl_stack_builder builder;
    cl_stack_build(&builder, cl_session.stack_depth);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); i++) {
        cl_position position;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(places, i), "O!i", &PyCode_Type, &position.code,
                              &position.lasti)) {
            return NULL;
        }
        if (!cl_stack_add(&builder, thread->frames, position)) {
            break;
        }
    }
    return PyLong_FromUnsignedLong(cl_stack_intern(&builder));
}

static PyObject *
cl_emit_site(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_thread *thread = cl_recording_thread();
    int detailed = thread != NULL && cl_session.level >= CL_LEVEL_PROFILE;
    return PyLong_FromUnsignedLong(detailed ? cl_site_capture(thread->frames) : 0);
}

static PyObject *
cl_emit_thread(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_thread *thread = cl_recording_thread();
    return PyLong_FromUnsignedLong(thread == NULL ? 0 : thread->id);
}

/* Registers a task under a name; its party id, 0 if nothing is being recorded. */
static PyObject *
cl_emit_party(PyObject *module, PyObject *name)
{
    (void)module;
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "party() takes a name");
        return NULL;
    }
    cl_thread *thread = cl_recording_thread();
    if (thread == NULL) {
        return PyLong_FromLong(0);
    }
    uint32_t bytes = 0;
    char *text = cl_utf8_copy(name, &bytes);
    cl_party *party = text == NULL ? NULL : malloc(sizeof *party + bytes);
    if (party == NULL) {
        free(text);
        return PyLong_FromLong(0);
    }
    party->id = atomic_fetch_add_explicit(&cl_session.next_thread_id, 1, memory_order_relaxed) + 1;
    party->native_id = thread->native_id;
    party->start_ns = cl_now();
    party->name_bytes = bytes;
    memcpy(party->name, text, bytes);
    cl_party_name_put(thread->epoch, party->id, text, bytes);
    free(text);
    uint32_t id = party->id;
    cl_party *head = atomic_load_explicit(&cl_session.new_parties, memory_order_relaxed);
    do {
        party->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&cl_session.new_parties, &head, party,
                                                    memory_order_release, memory_order_relaxed));
    return PyLong_FromUnsignedLong(id);
}

/* Records a wait of `wait->thread` (0: this thread) on a lock, with the counters that go with it (an acquire
 * too, if it was acquired). */
static void
cl_emit(cl_thread *thread, cl_lock *lock, cl_wait_record *wait)
{
    cl_block *block = thread == NULL || wait->start_ns == 0
                          ? NULL
                          : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) {
        return;
    }
    wait->lock = lock->id;
    wait->end_ns = wait->end_ns < wait->start_ns ? wait->start_ns : wait->end_ns;
    if (wait->thread == 0 || wait->thread == thread->id) {
        wait->thread = thread->id;
        wait->park_ns = wait->end_ns - wait->start_ns;
    } /* else a task, which does not keep its thread from running others while it waits */
    if (wait->outcome == CL_FAILED_TRY) {
        cl_add(&block->value[CL_C_FAILED_TRIES], 1);
    }
    else if (wait->kind == CL_CONTENTION) {
        cl_count_wait(block, wait);
    }
    if (cl_session.level >= CL_LEVEL_PROFILE) {
        cl_thread_record(thread, CL_WAITS, wait, sizeof *wait);
    }
}

/* emit_wait(lock, party, start_ns, end_ns, outcome, kind, stack, holder, holder_site, holder_stack,
 * waiters, flags=0, awaited_stack=0): one wait. */
static PyObject *
cl_emit_wait(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    unsigned int party, stack, holder, holder_site, holder_stack, waiters, flags = 0, awaited_stack = 0;
    int outcome, kind;
    unsigned long long start, end;
    if (!PyArg_ParseTuple(args, "OIKKiiIIIII|II", &object, &party, &start, &end, &outcome, &kind, &stack,
                          &holder, &holder_site, &holder_stack, &waiters, &flags, &awaited_stack)) {
        return NULL;
    }
    cl_lock *lock = cl_as_ours(object);
    if (lock == NULL || outcome < CL_ACQUIRED || outcome > CL_CANCELLED || kind < CL_CONTENTION
        || kind > CL_COORDINATION) {
        PyErr_SetString(PyExc_ValueError, "emit_wait() takes a lock of ours and known codes");
        return NULL;
    }
    cl_wait_record wait = {
        .start_ns = start, .end_ns = end, .thread = party, .stack = stack, .holder = holder,
        .holder_site = holder_site, .holder_stack = holder_stack, .waiters = waiters,
        .outcome = (uint8_t)outcome, .kind = (uint8_t)kind,
        .flags = (uint16_t)flags, .awaited_stack = awaited_stack};
    cl_emit(cl_recording_thread(), lock, &wait);
    Py_RETURN_NONE;
}

/* count(lock, acquires, failed_tries, recursions): attempts without a wait. */
static PyObject *
cl_emit_count(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    static const int counter[] = {CL_C_ACQUIRES, CL_C_FAILED_TRIES, CL_C_RECURSIONS};
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "count() takes a lock and three numbers");
        return NULL;
    }
    cl_lock *lock = cl_as_ours(args[0]);
    cl_thread *thread = lock == NULL ? NULL : cl_recording_thread();
    cl_block *block = thread == NULL ? NULL
                                     : cl_block_get(thread, lock->id, lock, cl_lock_register);
    for (int i = 0; i < 3 && block != NULL; i++) {
        unsigned long amount = PyLong_AsUnsignedLong(args[i + 1]);
        if (PyErr_Occurred()) {
            return NULL;
        }
        cl_add(&block->value[counter[i]], amount);
    }
    Py_RETURN_NONE;
}

#define CL_EMIT_METHODS \
    {"now", cl_emit_now, METH_NOARGS, \
     "now()\n--\n\nNanoseconds since the recording began (never 0); 0 if nothing is recorded."}, \
    {"capture_stack", cl_emit_stack, METH_NOARGS, \
     "capture_stack()\n--\n\nThe id of the caller's stack; 0 if it is not recorded."}, \
    {"capture_site", cl_emit_site, METH_NOARGS, \
     "capture_site()\n--\n\nThe id of the innermost frame of user code; 0 if not recorded."}, \
    {"current_party", cl_emit_thread, METH_NOARGS, \
     "current_party()\n--\n\nThe id of the calling thread in the recording; 0 without one."}, \
    {"party", cl_emit_party, METH_O, "party(name)\n--\n\nA new id for a task."}, \
    {"emit_wait", cl_emit_wait, METH_VARARGS, \
     "emit_wait(lock, party, start_ns, end_ns, outcome, kind, stack, holder, holder_site,\n" \
     "holder_stack, waiters, flags=0, awaited_stack=0)\n--\n\n" \
     "Record a wait that Python code timed with now()."}, \
    {"count", (PyCFunction)(void (*)(void))cl_emit_count, METH_FASTCALL, \
     "count(lock, acquires, failed_tries, recursions)\n--\n\nCount attempts that did not wait."}, \
    {"intern_stack", cl_emit_intern_stack, METH_O, \
     "intern_stack(places)\n--\n\nThe id of a stack of (code, instruction offset), innermost first."}, \
    {"stack_of", cl_emit_stack_of, METH_O, \
     "stack_of(party)\n--\n\nThe id of what another thread is executing; 0 if that is not known."}

#endif
