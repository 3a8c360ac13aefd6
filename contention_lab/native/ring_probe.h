/* A ring on its own, for the tests that check it against a model. */
#ifndef CL_RING_PROBE_H
#define CL_RING_PROBE_H

#include "pycompat.h"
#include "ring.h"

#define CL_RING_CAPSULE "contention_lab.native._core.ring"

static void
cl_ring_capsule_free(PyObject *capsule)
{
    cl_ring *ring = PyCapsule_GetPointer(capsule, CL_RING_CAPSULE);
    free(ring->data);
    free(ring);
}

static PyObject *
cl_ring_new(PyObject *module, PyObject *argument)
{
    (void)module;
    Py_ssize_t capacity = PyLong_AsSsize_t(argument);
    if (capacity < 64 || capacity > (1 << 24) || (capacity & (capacity - 1)) != 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "capacity must be a power of two from 64 to 2**24");
        }
        return NULL;
    }
    cl_ring *ring = calloc(1, sizeof *ring);
    uint8_t *data = malloc((size_t)capacity);
    if (ring == NULL || data == NULL) {
        free(ring);
        free(data);
        return PyErr_NoMemory();
    }
    ring->data = data;
    ring->capacity = (uint64_t)capacity;
    return PyCapsule_New(ring, CL_RING_CAPSULE, cl_ring_capsule_free);
}

static PyObject *
cl_ring_push(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    unsigned int kind;
    Py_buffer payload;
    if (!PyArg_ParseTuple(args, "OIy*", &capsule, &kind, &payload)) {
        return NULL;
    }
    cl_ring *ring = PyCapsule_GetPointer(capsule, CL_RING_CAPSULE);
    PyObject *result = NULL;
    if (ring == NULL) {
        goto done;
    }
    if (kind == 0 || CL_RING_BYTES((uint64_t)payload.len) > ring->capacity / 2) {
        PyErr_SetString(PyExc_ValueError, "kind must not be 0, payload at most half the ring");
        goto done;
    }
    uint64_t next_tail;
    void *room = cl_ring_reserve(ring, kind, (uint32_t)payload.len, &next_tail);
    if (room != NULL) {
        memcpy(room, payload.buf, (size_t)payload.len);
        cl_ring_commit(ring, next_tail);
    }
    result = PyBool_FromLong(room != NULL);
done:
    PyBuffer_Release(&payload);
    return result;
}

/* The oldest record as (kind, bytes padded to a multiple of 8), or None. */
static PyObject *
cl_ring_pop_oldest(PyObject *module, PyObject *capsule)
{
    (void)module;
    cl_ring *ring = PyCapsule_GetPointer(capsule, CL_RING_CAPSULE);
    if (ring == NULL) {
        return NULL;
    }
    const cl_ring_item *item = cl_ring_peek(ring);
    if (item == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *result = Py_BuildValue("(Iy#)", item->kind, (const char *)(item + 1),
                                     (Py_ssize_t)(item->bytes - sizeof *item));
    cl_ring_pop(ring, item);
    return result;
}

#endif
