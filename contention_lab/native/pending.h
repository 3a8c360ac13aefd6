/* What probes have begun in frames that have not ended: see probe.h. A table of C's, because a wait begins and ends
 * with it, and many are looked for that are not there.
 *
 * Guarded by the GIL or, without one, by cl_intern_mutex.
 */
#ifndef CL_PENDING_H
#define CL_PENDING_H

#include "intern.h"
#include "pycompat.h"

typedef struct {
    const void *frame; /* compared, never followed; NULL: an empty place */
    const void *begin; /* the probe, likewise */
    PyObject *kept;    /* owned */
} cl_pending;

static struct {
    cl_pending *place; /* open addressing, never more than half full */
    uint32_t mask;
    _Atomic uint32_t count;
} cl_pendings;

static inline void
cl_pending_lock(void)
{
    if (CL_FREE_THREADED) {
        pthread_mutex_lock(&cl_intern_mutex);
    }
}

static inline void
cl_pending_unlock(void)
{
    if (CL_FREE_THREADED) {
        pthread_mutex_unlock(&cl_intern_mutex);
    }
}

/* Whether there are any. */
static inline int
cl_pending_some(void)
{
    return atomic_load_explicit(&cl_pendings.count, memory_order_relaxed) != 0;
}

static inline void
cl_pending_count(int more)
{
    uint32_t count = atomic_load_explicit(&cl_pendings.count, memory_order_relaxed);
    atomic_store_explicit(&cl_pendings.count, count + (uint32_t)more, memory_order_relaxed);
}

static inline uint32_t
cl_pending_home(const void *frame)
{
    return (uint32_t)cl_mix((uintptr_t)frame) & cl_pendings.mask;
}

/* Where a frame's is or would be; there is a table. */
static inline uint32_t
cl_pending_at(const void *frame)
{
    uint32_t at = cl_pending_home(frame);
    while (cl_pendings.place[at].frame != NULL && cl_pendings.place[at].frame != frame) {
        at = (at + 1) & cl_pendings.mask;
    }
    return at;
}

/* Makes room for one more. -1: no memory. */
static int
cl_pending_grow(void)
{
    uint32_t size = cl_pendings.place == NULL ? 64 : cl_pendings.mask + 1;
    if (cl_pendings.place != NULL && 2 * (cl_pendings.count + 1) <= size) {
        return 0;
    }
    cl_pending *old = cl_pendings.place;
    cl_pending *place = calloc(2 * (size_t)size, sizeof *place);
    if (place == NULL) {
        return -1;
    }
    cl_pendings.place = place;
    cl_pendings.mask = 2 * size - 1;
    for (uint32_t i = 0; old != NULL && i < size; i++) {
        if (old[i].frame != NULL) {
            place[cl_pending_at(old[i].frame)] = old[i];
        }
    }
    free(old);
    return 0;
}

/* Where what `begin` has kept in the frame is, NULL if it has nothing there. */
static inline cl_pending *
cl_pending_of(const void *frame, const void *begin)
{
    cl_pending *place = cl_pending_some() ? &cl_pendings.place[cl_pending_at(frame)] : NULL;
    return place != NULL && place->frame == frame && place->begin == begin ? place : NULL;
}

/* Whether it has something. */
static inline int
cl_pending_has(const void *frame, const void *begin)
{
    cl_pending_lock();
    int has = cl_pending_of(frame, begin) != NULL;
    cl_pending_unlock();
    return has;
}

/* Keeps a reference that it steals. Returns one to drop: what the frame had, or the same if there is no memory;
 * or NULL. */
static PyObject *
cl_pending_put(const void *frame, const void *begin, PyObject *kept)
{
    cl_pending_lock();
    PyObject *dropped = kept;
    if (cl_pending_grow() == 0) {
        cl_pending *place = &cl_pendings.place[cl_pending_at(frame)];
        dropped = place->kept;
        cl_pending_count(place->frame == NULL);
        *place = (cl_pending){frame, begin, kept};
    }
    cl_pending_unlock();
    return dropped;
}

/* Empties a place. Those behind it that would not be found past it move up. */
static void
cl_pending_close(uint32_t hole)
{
    cl_pending *place = cl_pendings.place;
    uint32_t mask = cl_pendings.mask;
    for (uint32_t at = (hole + 1) & mask; place[at].frame != NULL; at = (at + 1) & mask) {
        if (((at - cl_pending_home(place[at].frame)) & mask) >= ((at - hole) & mask)) {
            place[hole] = place[at];
            hole = at;
        }
    }
    place[hole] = (cl_pending){NULL, NULL, NULL};
}

/* Takes out what `begin` has kept in the frame: a reference, or NULL. */
static PyObject *
cl_pending_take(const void *frame, const void *begin)
{
    PyObject *kept = NULL;
    cl_pending_lock();
    cl_pending *hole = cl_pending_of(frame, begin);
    if (hole != NULL) {
        kept = hole->kept;
        cl_pending_count(-1);
        cl_pending_close((uint32_t)(hole - cl_pendings.place));
    }
    cl_pending_unlock();
    return kept;
}

#endif
