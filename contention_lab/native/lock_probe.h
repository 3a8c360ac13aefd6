/* A lock under native threads, for tests: nothing but the lock itself keeps them apart, with no GIL's help. */
#ifndef CL_LOCK_PROBE_H
#define CL_LOCK_PROBE_H

#include "rwlock.h"
#include "source.h"

typedef struct {
    cl_lock *lock;
    uint64_t rounds, timeout_ns;
    uint64_t *guarded;    /* changed under the lock, in two steps that another thread would spoil */
    uint64_t given_up;
} cl_hammer;

static int
cl_hammer_acquire(cl_lock *lock, uint64_t timeout_ns)
{
    uint64_t deadline = timeout_ns == 0 ? CL_FOREVER : cl_monotonic_ns() + timeout_ns;
    cl_wait_parts parts = {0};
    int result = CL_WAIT_SIGNAL;
    while (!cl_lock_try(lock)) {
        result = cl_lock_wait(lock, deadline, 0, &parts);
        if (result == CL_WAIT_ACQUIRED || result == CL_WAIT_TIMED_OUT) {
            return result == CL_WAIT_ACQUIRED;
        }
    }
    return 1;
}

static void *
cl_hammer_run(void *argument)
{
    cl_hammer *self = argument;
    for (uint64_t i = 0; i < self->rounds; i++) {
        if (!cl_hammer_acquire(self->lock, self->timeout_ns)) {
            self->given_up++;
            continue;
        }
        volatile uint64_t *guarded = self->guarded;
        uint64_t value = *guarded;
        for (int pause = 0; pause < 20; pause++) {
            cl_pause();
        }
        *guarded = value + 1;
        cl_lock_unlock(self->lock);
    }
    return NULL;
}

/* lock_hammer(lock, threads, rounds, timeout_ns): how often the lock was had, and how often given up. */
static PyObject *
cl_lock_hammer(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    unsigned int threads;
    unsigned long long rounds, timeout_ns;
    if (!PyArg_ParseTuple(args, "OIKK:lock_hammer", &object, &threads, &rounds, &timeout_ns)) {
        return NULL;
    }
    cl_lock *lock = PyObject_TypeCheck(object, cl_rwlock_type) ? cl_rw_side(object) : cl_as_ours(object);
    if (lock == NULL) {
        PyErr_SetString(PyExc_TypeError, "lock_hammer() takes a lock of ours");
        return NULL;
    }
    cl_hammer *hammers = calloc(threads, sizeof *hammers);
    pthread_t *ids = calloc(threads, sizeof *ids);
    uint64_t guarded = 0, given_up = 0;
    unsigned int started = 0;
    if (hammers != NULL && ids != NULL) {
        Py_BEGIN_ALLOW_THREADS
        for (; started < threads; started++) {
            hammers[started] = (cl_hammer){lock, rounds, timeout_ns, &guarded, 0};
            if (pthread_create(&ids[started], NULL, cl_hammer_run, &hammers[started]) != 0) {
                break;
            }
        }
        for (unsigned int i = 0; i < started; i++) {
            pthread_join(ids[i], NULL);
            given_up += hammers[i].given_up;
        }
        Py_END_ALLOW_THREADS
    }
    free(hammers);
    free(ids);
    if (started < threads) {
        return PyErr_NoMemory();
    }
    return Py_BuildValue("KK", (unsigned long long)guarded, (unsigned long long)given_up);
}

#endif
