/* What Python cannot do with the trace file without modules the program may not have loaded: taking it for
 * this recording alone, and adding metadata while it is being written.
 */
#ifndef CL_TRACE_FILE_H
#define CL_TRACE_FILE_H

#include "recorder.h"

/* claim(fd): moves the descriptor up and locks a regular file against other recordings. */
static PyObject *
cl_claim(PyObject *module, PyObject *number)
{
    (void)module;
    long fd = PyLong_AsLong(number);
    if (fd == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int high = fcntl((int)fd, F_DUPFD_CLOEXEC, CL_HIGH_DESCRIPTOR);
    if (high >= 0) { /* else: a low limit on descriptors */
        close((int)fd);
        fd = high;
    }
    struct stat kind;
    if (fstat((int)fd, &kind) == 0 && S_ISREG(kind.st_mode) && flock((int)fd, LOCK_EX | LOCK_NB) != 0
        && errno == EWOULDBLOCK) { /* other errors: the file system has no locks */
        PyErr_SetFromErrno(PyExc_OSError);
        close((int)fd);
        return NULL;
    }
    return PyLong_FromLong(fd);
}

/* add_meta(json): queues a META chunk; False if nothing is being recorded. */
static PyObject *
cl_add_meta(PyObject *module, PyObject *json)
{
    (void)module;
    char *data;
    Py_ssize_t bytes;
    if (PyBytes_AsStringAndSize(json, &data, &bytes) < 0) {
        return NULL;
    }
    if (bytes > 16 << 20) {
        PyErr_SetString(PyExc_ValueError, "metadata out of range");
        return NULL;
    }
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0) {
        Py_RETURN_FALSE;
    }
    cl_meta *meta = malloc(sizeof *meta + (size_t)bytes);
    if (meta == NULL) {
        return PyErr_NoMemory();
    }
    meta->bytes = (size_t)bytes;
    memcpy(meta->json, data, (size_t)bytes);
    cl_meta *head = atomic_load_explicit(&cl_session.new_meta, memory_order_relaxed);
    do {
        meta->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&cl_session.new_meta, &head, meta,
                                                    memory_order_release, memory_order_relaxed));
    Py_RETURN_TRUE;
}

#endif
