/* `_engine`: the simulator's engine. One function, which reads and fills NumPy records.
 *
 * It keeps no state between calls and runs without the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "run.h"

#define EVENTS_BETWEEN_SIGNALS 2000000u

enum { MACHINE_IN, OPS_IN, ITEMS_IN, QUEUES_IN, LOCKS_IN, COSTS_IN, THREADS_IN, LOCKS_OUT,
       THREADS_OUT, TOTALS_OUT, RESPONSES_OUT, EVENTS_OUT, BUFFERS };

static const struct {
    const char *name;
    size_t size;
} layouts[BUFFERS] = {
    {"machine", sizeof(machine_row)},         {"ops", sizeof(op_row)},
    {"items", sizeof(item_row)},              {"queues", sizeof(queue_row)},
    {"locks", sizeof(lock_row)},              {"costs", sizeof(double)},
    {"threads", sizeof(int32_t)},             {"lock results", sizeof(lock_stats)},
    {"thread results", sizeof(thread_stats)}, {"totals", sizeof(totals_row)},
    {"responses", sizeof(uint64_t)},          {"events", sizeof(event_row)},
};

/* How many records a buffer has, in `counts`; false with an exception if it is not made of such. */
static int
count_records(const Py_buffer *buffers, size_t *counts)
{
    for (int i = 0; i < BUFFERS; i++) {
        counts[i] = (size_t)buffers[i].len / layouts[i].size;
        if (counts[i] * layouts[i].size != (size_t)buffers[i].len
            || (uintptr_t)buffers[i].buf % 8 != 0) {
            PyErr_Format(PyExc_ValueError, "%s: not an array of such records", layouts[i].name);
            return 0;
        }
    }
    if (counts[MACHINE_IN] != 1 || counts[TOTALS_OUT] != 1 || counts[RESPONSES_OUT] < 1
        || counts[LOCKS_OUT] != counts[LOCKS_IN] || counts[THREADS_OUT] != counts[THREADS_IN]) {
        PyErr_SetString(PyExc_ValueError, "the results do not fit what is simulated");
        return 0;
    }
    return 1;
}

static PyObject *
simulate(const Py_buffer *buffers)
{
    size_t counts[BUFFERS];
    if (!count_records(buffers, counts)) {
        return NULL;
    }
    tables in = {
        buffers[MACHINE_IN].buf, buffers[OPS_IN].buf,   buffers[ITEMS_IN].buf,
        buffers[QUEUES_IN].buf,  buffers[LOCKS_IN].buf, buffers[COSTS_IN].buf,
        buffers[THREADS_IN].buf, counts[OPS_IN],        counts[ITEMS_IN],
        counts[QUEUES_IN],       counts[LOCKS_IN],      counts[COSTS_IN],
        counts[THREADS_IN],
    };
    results out = {
        buffers[LOCKS_OUT].buf,     buffers[THREADS_OUT].buf, buffers[TOTALS_OUT].buf,
        buffers[RESPONSES_OUT].buf, buffers[EVENTS_OUT].buf,  counts[RESPONSES_OUT],
        counts[EVENTS_OUT],
    };
    const char *fault = tables_fault(&in);
    if (fault != NULL) {
        PyErr_SetString(PyExc_ValueError, fault);
        return NULL;
    }
    state s;
    int made, ended = 0;
    Py_BEGIN_ALLOW_THREADS
    made = state_make(&s, &in, &out);
    Py_END_ALLOW_THREADS
    while (made && !ended && PyErr_CheckSignals() == 0) {
        Py_BEGIN_ALLOW_THREADS
        ended = run_some(&s, EVENTS_BETWEEN_SIGNALS);
        Py_END_ALLOW_THREADS
    }
    int failed = !made || s.heap.failed;
    state_free(&s);
    if (failed) {
        return PyErr_NoMemory();
    }
    if (!ended) {
        return NULL; /* a signal's handler raised */
    }
    Py_RETURN_NONE;
}

static PyObject *
engine_run(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer buffers[BUFFERS];
    memset(buffers, 0, sizeof buffers);
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*w*w*w*w*w*:run", &buffers[0], &buffers[1],
                          &buffers[2], &buffers[3], &buffers[4], &buffers[5], &buffers[6],
                          &buffers[7], &buffers[8], &buffers[9], &buffers[10], &buffers[11])) {
        return NULL; /* the buffers taken so far are released by the parser */
    }
    PyObject *result = simulate(buffers);
    for (int i = 0; i < BUFFERS; i++) {
        PyBuffer_Release(&buffers[i]);
    }
    return result;
}

static PyMethodDef engine_methods[] = {
    {"run", engine_run, METH_VARARGS,
     "run(machine, ops, items, queues, locks, costs, threads, lock_stats, thread_stats, totals, "
     "responses, events)\n--\n\nSimulate the tables of packing.py and fill the results."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot engine_slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef engine_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_engine",
    .m_doc = "The simulator's engine.",
    .m_methods = engine_methods,
    .m_slots = engine_slots,
};

PyMODINIT_FUNC
PyInit__engine(void)
{
    return PyModuleDef_Init(&engine_module);
}
