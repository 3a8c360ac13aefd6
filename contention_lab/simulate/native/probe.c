/* `_probe`: measures this host for the simulator. Native threads that need no Python, no GIL.
 *
 * Every function starts its own threads and waits for them; at least two are alive while anything is
 * measured, the caller's being one. Elsewhere than on Linux every function refuses. */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* CPU affinity */
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef __linux__

#include "probe_contend.h"
#include "probe_host.h"

#define MANY_THREADS 1024
#define MANY_ROUNDS 10000000u

/* Reads a sequence of CPU numbers, -1 for any; their number, or -1 with an exception. */
static Py_ssize_t
read_cpus(PyObject *sequence, int **cpus)
{
    PyObject *fast = PySequence_Fast(sequence, "cpus: not a sequence");
    if (fast == NULL) {
        return -1;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    if (count < 1 || count > MANY_THREADS) {
        Py_DECREF(fast);
        PyErr_Format(PyExc_ValueError, "%zd threads: between 1 and %d can be measured", count,
                     MANY_THREADS);
        return -1;
    }
    *cpus = PyMem_Malloc((size_t)count * sizeof **cpus);
    if (*cpus == NULL) {
        Py_DECREF(fast);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        long cpu = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));
        if (cpu == -1 && PyErr_Occurred()) {
            PyMem_Free(*cpus);
            Py_DECREF(fast);
            return -1;
        }
        (*cpus)[i] = cpu < -1 || cpu > 1 << 20 ? -1 : (int)cpu;
    }
    Py_DECREF(fast);
    return count;
}

static PyObject *
failed(int error)
{
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *
samples_list(const uint64_t *samples, uint64_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        PyObject *sample = PyLong_FromUnsignedLongLong(samples[i]);
        if (sample == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, sample);
    }
    return list;
}

static PyObject *
contest_results(const contender *contenders, Py_ssize_t threads)
{
    PyObject *list = PyList_New(threads);
    for (Py_ssize_t i = 0; list != NULL && i < threads; i++) {
        PyObject *pair = Py_BuildValue("KK", (unsigned long long)contenders[i].done,
                                       (unsigned long long)contenders[i].spent_ns);
        if (pair == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, pair);
    }
    return list;
}

static PyObject *
probe_contend(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, *cpus;
    double hold_ns, think_ns;
    unsigned long long operations, limit_ns;
    PyObject *sequence;
    if (!PyArg_ParseTuple(args, "iOddKK:contend", &kind, &sequence, &hold_ns, &think_ns,
                          &operations, &limit_ns)) {
        return NULL;
    }
    if (kind < 0 || kind >= PROBE_KINDS || !(hold_ns >= 0 && hold_ns < 1e9)
        || !(think_ns >= 0 && think_ns < 1e9)) {
        PyErr_SetString(PyExc_ValueError, "contend: no such kind, or times out of range");
        return NULL;
    }
    Py_ssize_t threads = read_cpus(sequence, &cpus);
    if (threads < 0) {
        return NULL;
    }
    contest *shared = aligned_alloc(CACHE_LINE, sizeof *shared);
    contender *contenders = aligned_alloc(CACHE_LINE, (size_t)threads * sizeof *contenders);
    PyObject *result = NULL;
    if (shared == NULL || contenders == NULL) {
        PyErr_NoMemory();
    }
    else {
        int error;
        Py_BEGIN_ALLOW_THREADS
        memset(shared, 0, sizeof *shared);
        memset(contenders, 0, (size_t)threads * sizeof *contenders);
        double rate = rounds_per_ns();
        shared->kind = kind;
        shared->hold_rounds = (uint64_t)(hold_ns * rate);
        shared->think_rounds = (uint64_t)(think_ns * rate);
        shared->operations = operations;
        shared->limit_ns = limit_ns;
        shared->threads = (int)threads;
        error = contend(shared, contenders, cpus);
        Py_END_ALLOW_THREADS
        result = error ? failed(error) : contest_results(contenders, threads);
    }
    free(shared);
    free(contenders);
    PyMem_Free(cpus);
    return result;
}

/* Runs a duel on two CPUs; NULL with an exception if that fails. The samples are the caller's. */
static duel *
run_duel(PyObject *args, void *(*one)(void *), void *(*other)(void *), duellist *both)
{
    int cpus[2];
    unsigned long long rounds, limit_ns;
    if (!PyArg_ParseTuple(args, "iiKK", &cpus[0], &cpus[1], &rounds, &limit_ns)) {
        return NULL;
    }
    if (rounds < 2 || rounds > MANY_ROUNDS) {
        PyErr_SetString(PyExc_ValueError, "the number of rounds is out of range");
        return NULL;
    }
    duel *shared = aligned_alloc(CACHE_LINE, sizeof *shared);
    memset(both, 0, 2 * sizeof *both);
    both[0].samples = calloc(rounds, sizeof *both[0].samples);
    both[1].samples = calloc(rounds, sizeof *both[1].samples);
    int error = ENOMEM;
    if (shared != NULL && both[0].samples != NULL && both[1].samples != NULL) {
        memset(shared, 0, sizeof *shared);
        shared->rounds = rounds;
        shared->limit_ns = limit_ns;
        shared->same_cpu = cpus[0] == cpus[1];
        Py_BEGIN_ALLOW_THREADS
        error = duel_run(shared, both, cpus, one, other);
        Py_END_ALLOW_THREADS
    }
    if (error != 0) {
        free(shared);
        free(both[0].samples);
        free(both[1].samples);
        failed(error);
        return NULL;
    }
    return shared;
}

static void
end_duel(duel *shared, duellist *both)
{
    free(shared);
    free(both[0].samples);
    free(both[1].samples);
}

static PyObject *
each_way(PyObject *args, void *(*run)(void *))
{
    duellist both[2];
    duel *shared = run_duel(args, run, run, both);
    if (shared == NULL) {
        return NULL;
    }
    /* The second one's first round began when the first one was at it. */
    double passes = 2.0 * (double)(shared->rounds - 1);
    double ns = both[1].last_ns > 0 ? (double)(both[1].last_ns - both[1].first_ns) / passes : -1;
    end_duel(shared, both);
    if (ns < 0) {
        PyErr_SetString(PyExc_TimeoutError, "the two threads did not get to run");
        return NULL;
    }
    return PyFloat_FromDouble(ns);
}

static PyObject *
probe_transfer(PyObject *module, PyObject *args)
{
    (void)module;
    return each_way(args, pass_run);
}

static PyObject *
probe_handover(PyObject *module, PyObject *args)
{
    (void)module;
    return each_way(args, sleep_run);
}

static PyObject *
probe_wakeups(PyObject *module, PyObject *args)
{
    (void)module;
    duellist both[2];
    duel *shared = run_duel(args, waker_run, sleeper_run, both);
    if (shared == NULL) {
        return NULL;
    }
    PyObject *latencies = samples_list(both[1].samples, both[1].count);
    PyObject *calls = samples_list(both[0].samples, both[0].count);
    end_duel(shared, both);
    if (latencies == NULL || calls == NULL) {
        Py_XDECREF(latencies);
        Py_XDECREF(calls);
        return NULL;
    }
    return Py_BuildValue("NN", latencies, calls);
}

static PyObject *
probe_slices(PyObject *module, PyObject *args)
{
    (void)module;
    duellist both[2];
    duel *shared = run_duel(args, slice_run, slice_run, both);
    if (shared == NULL) {
        return NULL;
    }
    PyObject *list = samples_list(both[0].samples, both[0].count);
    end_duel(shared, both);
    return list;
}

static PyObject *
probe_refused_sleep(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long rounds;
    if (!PyArg_ParseTuple(args, "K:refused_sleep", &rounds)) {
        return NULL;
    }
    atomic_uint word = 1;
    uint64_t spent;
    Py_BEGIN_ALLOW_THREADS
    uint64_t began = clock_ns();
    for (unsigned long long i = 0; i < rounds; i++) {
        futex(&word, FUTEX_WAIT, 0);
    }
    spent = clock_ns() - began;
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble((double)spent / (double)(rounds ? rounds : 1));
}

#else

static PyObject *
not_here(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    PyErr_SetString(PyExc_NotImplementedError, "only Linux can be measured");
    return NULL;
}
#define probe_contend not_here
#define probe_transfer not_here
#define probe_handover not_here
#define probe_wakeups not_here
#define probe_slices not_here
#define probe_refused_sleep not_here

#endif

static PyMethodDef probe_methods[] = {
    {"contend", probe_contend, METH_VARARGS,
     "contend(kind, cpus, hold_ns, think_ns, operations, limit_ns)\n--\n\n"
     "(operations, ns) of each thread, one on each CPU named (-1: any)."},
    {"transfer", probe_transfer, METH_VARARGS,
     "transfer(cpu, other_cpu, rounds, limit_ns)\n--\n\n"
     "ns that a cache line takes from one spinning thread to another."},
    {"handover", probe_handover, METH_VARARGS,
     "handover(cpu, other_cpu, rounds, limit_ns)\n--\n\n"
     "ns of waking the other thread and going to sleep, until it does the same."},
    {"wakeups", probe_wakeups, METH_VARARGS,
     "wakeups(cpu, other_cpu, rounds, limit_ns)\n--\n\n"
     "(ns until the sleeper on the other CPU runs, ns of the call that wakes it), of each wake-up."},
    {"slices", probe_slices, METH_VARARGS,
     "slices(cpu, other_cpu, most, limit_ns)\n--\n\n"
     "ns that a thread ran, each time, while another wanted the same CPU."},
    {"refused_sleep", probe_refused_sleep, METH_VARARGS,
     "refused_sleep(rounds)\n--\n\nns of a system call that does not go to sleep after all."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot probe_slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef probe_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_probe",
    .m_doc = "Measurements of this host for the simulator.",
    .m_methods = probe_methods,
    .m_slots = probe_slots,
};

PyMODINIT_FUNC
PyInit__probe(void)
{
    return PyModuleDef_Init(&probe_module);
}
