/* contention_lab.native._core: locks, clock, stacks and the recorder in one translation unit, so that
 * the hot paths are inlined. Each concept is one header; this file is only their Python face.
 *
 * The module needs no GIL and keeps no state that needs one. It serves one interpreter of the process.
 */
#include "pycompat.h"

#include "rwlock.h"
#include "channel_type.h"
#include "recorder.h"
#include "ring_probe.h"
#include "lock_probe.h"
#include "task_wait.h"
#include "simple_queue.h"
#include "loop_step.h"
#include "probe.h"
#include "exchange.h"
#include "around_table.h"
#include "front.h"
#include "trace_file.h"

static PyObject *
core_start(PyObject *module, PyObject *args)
{
    (void)module;
    int fd, level;
    unsigned int stack_depth;
    unsigned long long ring_bytes;
    const char *meta;
    Py_ssize_t meta_bytes;
    if (!PyArg_ParseTuple(args, "iiIKy#", &fd, &level, &stack_depth, &ring_bytes, &meta, &meta_bytes)) {
        return NULL;
    }
    if (level < CL_LEVEL_COUNTERS || level > CL_LEVEL_TRACE || stack_depth < 1
        || stack_depth > CL_MAX_DEPTH || ring_bytes < 4096 || ring_bytes > (1u << 30)
        || (ring_bytes & (ring_bytes - 1)) != 0 || meta_bytes > (16 << 20)) {
        PyErr_SetString(PyExc_ValueError, "level, stack depth, ring size or metadata out of range");
        return NULL;
    }
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "a recording is already active in this process");
        return NULL;
    }
    int error = cl_recorder_start(fd, level, stack_depth, ring_bytes, meta, (size_t)meta_bytes);
    if (error != 0) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

/* look_out(after_ns, aborts): the recording that is active reports hangs, and on SIGUSR1. */
static PyObject *
core_look_out(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long after_ns;
    int aborts;
    if (!PyArg_ParseTuple(args, "Kp", &after_ns, &aborts)) {
        return NULL;
    }
    cl_hang_begin(after_ns, aborts);
    Py_RETURN_NONE;
}

/* say(line): to the standard error stream, as far as it can be written. */
static PyObject *
core_say(PyObject *module, PyObject *args)
{
    (void)module;
    const char *line;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "y#", &line, &bytes)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    (void)!cl_quiet_write(STDERR_FILENO, line, (size_t)bytes);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *
core_quietly(PyObject *module, PyObject *function)
{
    (void)module;
    cl_quiet quiet;
    cl_quiet_begin(&quiet);
    PyObject *result = PyObject_CallNoArgs(function);
    cl_quiet_end(&quiet, 1);
    return result;
}

static PyObject *
core_fork_begins(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_recorder_pause();
    Py_RETURN_NONE;
}

static PyObject *
core_fork_is_over(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_fork_is_over();
    Py_RETURN_NONE;
}

static PyObject *
core_fork_called(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    cl_session.fork_calls++;
    Py_RETURN_NONE;
}

static PyObject *
core_fork_returned(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_fork_returned();
    Py_RETURN_NONE;
}

static PyObject *
core_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0) {
        PyErr_SetString(PyExc_RuntimeError, "no recording is active");
        return NULL;
    }
    cl_recorder_stop();
    const cl_status_record *status = &cl_writer.last;
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsi}", "waits", status->waits, "holds", status->holds, "dropped_waits",
        status->dropped_waits, "dropped_holds", status->dropped_holds, "bytes_written",
        cl_writer.file.bytes_written, "unrecorded_threads",
        (unsigned long long)atomic_load_explicit(&cl_session.unrecorded_threads, memory_order_relaxed),
        "acquires", cl_totals.acquires, "contended", cl_totals.contended, "wait_ns", cl_totals.wait_ns,
        "error", cl_writer.file.error);
}

/* Copies a tuple of str into an array of C strings; what was there before is kept (it may be in use). */
static int
core_take_prefixes(PyObject *tuple, char **prefix, int *count)
{
    *count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple) && i < CL_PREFIXES; i++) {
        uint32_t bytes;
        char *copy = cl_utf8_copy(PyTuple_GET_ITEM(tuple, i), &bytes);
        if (copy == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        prefix[(*count)++] = copy;
    }
    return 0;
}

static PyObject *
core_set_library(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *prefixes, *exceptions, *hidden;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &prefixes, &PyTuple_Type, &exceptions,
                          &PyTuple_Type, &hidden)) {
        return NULL;
    }
    if (core_take_prefixes(prefixes, cl_library.prefix, &cl_library.prefixes) < 0
        || core_take_prefixes(exceptions, cl_library.exception, &cl_library.exceptions) < 0
        || core_take_prefixes(hidden, cl_library.hidden, &cl_library.hiddens) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
core_active(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0);
}

static PyObject *
core_layer(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int sees_gil, other;
    int there = cl_layer_is_there(&sees_gil, &other);
    return Py_BuildValue("(NNN)", PyBool_FromLong(there), PyBool_FromLong(sees_gil), PyBool_FromLong(other));
}

static PyObject *
core_clock(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(cl_clock.source == CL_CLOCK_TSC ? "tsc" : "monotonic");
}

static PyObject *
core_stack(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_cursor cursor = cl_cursor_begin();
    cl_position position;
    PyObject *list = PyList_New(0);
    while (list != NULL && cl_cursor_next(&cursor, &position)) {
        PyObject *item = Py_BuildValue("(Oi)", position.code,
                                       PyCode_Addr2Line(position.code, position.lasti));
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    cl_cursor_end(&cursor);
    return list;
}

static PyMethodDef core_methods[] = {
    {"start", core_start, METH_VARARGS,
     "start(fd, level, stack_depth, ring_bytes, meta)\n--\n\n"
     "Start recording to a file descriptor, which the recorder then owns."},
    {"claim", cl_claim, METH_O,
     "claim(fd)\n--\n\nTake a file for one recording; the descriptor to use instead. OSError if another"
     " has it."},
    {"add_meta", cl_add_meta, METH_O,
     "add_meta(json)\n--\n\nWrite metadata that updates the earlier; False if nothing is recorded."},
    {"stand_in", cl_stand_in, METH_VARARGS,
     "stand_in(type, name)\n--\n\nA lock of ours for one that exists."},
    {"exchange", (PyCFunction)(void (*)(void))cl_exchange, METH_FASTCALL,
     "exchange(old, new, places, methods)\n--\n\n"
     "Put a lock in the place of another everywhere, or nowhere; None, or why not."},
    {"look_out", core_look_out, METH_VARARGS,
     "look_out(after_ns, aborts)\n--\n\nReport who holds and who waits: on SIGUSR1, unless the program"
     " handles it, and\nif no thread that waits has moved for that long (0: never)."},
    {"say", core_say, METH_VARARGS,
     "say(line)\n--\n\nWrite to the standard error stream; that it cannot be written sends no signal."},
    {"quietly", core_quietly, METH_O,
     "quietly(function)\n--\n\nCall what writes; that it cannot write sends the program no signal."},
    {"fork_begins", core_fork_begins, METH_NOARGS,
     "fork_begins()\n--\n\nThe recorder's own threads end, until fork_is_over()."},
    {"fork_is_over", core_fork_is_over, METH_NOARGS, "fork_is_over()\n--\n\nThey start again."},
    {"fork_called", core_fork_called, METH_VARARGS,
     "fork_called(*args)\n--\n\nThey do so only at fork_returned()."},
    {"fork_returned", core_fork_returned, METH_NOARGS, "fork_returned()\n--\n\nos.fork() did."},
    {"stop", core_stop, METH_NOARGS, "stop()\n--\n\nStop recording; returns totals."},
    CL_AROUND_METHODS,
    CL_CONDITION_METHODS,
    CL_PROCESS_LOCK_METHODS,
    CL_EMIT_METHODS,
    CL_LOOP_STEP_METHODS,
    CL_DROP_IN_METHODS,
    CL_TASK_METHODS,
    CL_SIMPLE_QUEUE_METHODS,
    {"wait_begin", cl_wait_begin, METH_O,
     "wait_begin(lock)\n--\n\nA coordination wait on a lock or Source begins; its token, 0 for none."},
    {"thread_over", cl_thread_over, METH_O,
     "thread_over(native_id)\n--\n\nThe Python code of that thread has ended."},
    {"wait_permit", cl_wait_permit, METH_VARARGS,
     "wait_permit(source, holder, holder_site, waiters)\n--\n\n"
     "A wait for a permit that `holder` has begins; its token, 0 for none."},
    {"watch", (PyCFunction)(void (*)(void))cl_source_watch, METH_FASTCALL,
     "watch(source, begins)\n--\n\nA task waits on a condition of this lock, or has ceased to."},
    {"name_in_trace", cl_name_in_trace, METH_O,
     "name_in_trace(lock)\n--\n\nLet the trace say what it is, though nothing may happen to it here."},
    {"wait_stop", cl_wait_stop, METH_O,
     "wait_stop(lock)\n--\n\nA coordination wait on it is over; wait_end() will say how it ended."},
    {"same_as", cl_same_as, METH_VARARGS,
     "same_as(lock, source)\n--\n\n"
     "A lock not used so far goes by the source's entry; with None it is not recorded."},
    {"part_of", cl_part_of, METH_VARARGS,
     "part_of(lock, source)\n--\n\nA lock not used so far is an inner part of what the source is for."},
    {"wait_end", (PyCFunction)(void (*)(void))cl_wait_end, METH_FASTCALL,
     "wait_end(lock, token, outcome, woken_by=lock)\n--\n\n"
     "That wait is over; woken_by: what wake() was called with."},
    {"wake", cl_wake, METH_O,
     "wake(lock)\n--\n\nThe calling thread is about to wake a waiter of this lock or Source."},
    {"set_library", core_set_library, METH_VARARGS,
     "set_library(prefixes, exceptions, hidden)\n--\n\n"
     "Which files are not the user's code, and which are left out of stacks. Call once, before\n"
     "anything is recorded."},
    {"active", core_active, METH_NOARGS, "active()\n--\n\nWhether a recording is active."},
    {"layer", core_layer, METH_NOARGS,
     "layer()\n--\n\nWhether the preloaded layer is in this process and sees the GIL, or is of another build."},
    {"clock", core_clock, METH_NOARGS, "clock()\n--\n\nThe clock in use: 'tsc' or 'monotonic'."},
    {"stack", core_stack, METH_NOARGS,
     "stack()\n--\n\nThe calling thread's (code, line) pairs, innermost first, as recorded."},
    {"lock_hammer", cl_lock_hammer, METH_VARARGS,
     "lock_hammer(lock, threads, rounds, timeout_ns)\n--\n\n"
     "How often native threads had the lock and gave up, for tests. Of an exclusive lock of ours."},
    {"ring_new", cl_ring_new, METH_O, "ring_new(capacity)\n--\n\nA ring, for tests."},
    {"ring_push", cl_ring_push, METH_VARARGS,
     "ring_push(ring, kind, payload)\n--\n\nFalse if the ring is full."},
    {"ring_pop", cl_ring_pop_oldest, METH_O,
     "ring_pop(ring)\n--\n\nThe oldest (kind, payload padded to 8 bytes), or None."},
    {NULL, NULL, 0, NULL},
};

static int
core_exec(PyObject *module)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
                        "contention_lab records the main interpreter only; import it there");
        return -1;
    }
    int error = cl_recorder_import();
    if (error != 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    if (cl_drop_in_look() < 0 || cl_lock_type_add(module, "Mutex", &cl_mutex_spec, cl_mutex_vectorcall) < 0
        || cl_lock_type_add(module, "SpinLock", &cl_spin_spec, cl_spin_vectorcall) < 0
        || cl_lock_family_add(module) < 0 || cl_rwlock_add(module) < 0
        || cl_channel_add_type(module) < 0
        || cl_lock_type_add(module, "PlainLock", &cl_plain_lock_spec, cl_plain_lock_vectorcall) < 0
        || cl_lock_type_add(module, "PlainRLock", &cl_rlock_spec, NULL) < 0
        || cl_lock_type_add(module, "Source", &cl_source_spec, NULL) < 0
        || cl_lock_type_add(module, "Front", &cl_front_spec, NULL) < 0) {
        return -1;
    }
    if (cl_drop_in_ready(module) < 0 || cl_beside_ready(module) < 0
        || cl_tasks_ready() < 0 || cl_loop_step_ready() < 0
        || cl_around_ready() < 0 || cl_conditions_ready() < 0 || cl_semaphores_ready() < 0
        || cl_pools_ready() < 0
        || cl_probe_ready(module) < 0) {
        return -1;
    }
    cl_permits_type = cl_record_type(module, &cl_permits_spec, cl_beside_type);
    cl_pool_type = cl_record_type(module, &cl_pool_spec, cl_beside_type);
    cl_pool_task_type = cl_record_type(module, &cl_pool_task_spec, &PyBaseObject_Type);
    cl_task_type = cl_record_type(module, &cl_task_spec, cl_beside_type);
    cl_task_wait_type = cl_record_type(module, &cl_task_wait_spec, &PyBaseObject_Type);
    if (cl_permits_type == NULL || cl_pool_type == NULL || cl_pool_task_type == NULL || cl_task_type == NULL
        || cl_task_wait_type == NULL) {
        return -1;
    }
    static const char *const ours[] = {"PlainLock", "PlainRLock", "Mutex", "Source", "SpinLock",
                                       "TicketLock", "McsLock", "AdaptiveMutex"};
    _Static_assert(sizeof ours / sizeof *ours <= CL_LOCK_TYPES, "lock types");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        PyObject *type = PyObject_GetAttrString(module, ours[i]);
        cl_lock_types[i] = (PyTypeObject *)type; /* kept: the module lives as long as the process */
    }
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        {"MAX_STACK_DEPTH", CL_MAX_DEPTH}, {"ACQUIRED", CL_ACQUIRED}, {"TIMED_OUT", CL_TIMED_OUT},
        {"FAILED_TRY", CL_FAILED_TRY}, {"INTERRUPTED", CL_INTERRUPTED}, {"CANCELLED", CL_CANCELLED},
        {"AGAIN", CL_WAIT_AGAIN}, {"ROOM", CL_WAIT_ROOM}, {"KEEPS_LAST", CL_KEEPS_LAST},
        {"KEEPS_FIRST", CL_KEEPS_FIRST},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "The native core of contention-lab.",
    .m_methods = core_methods,
    .m_slots = core_slots,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&core_module);
}
