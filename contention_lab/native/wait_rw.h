/* The two sides of an RWLock, and how they wait: asleep. Runs without the GIL.
 *
 * It is phase-fair (B. B. Brandenburg and J. H. Anderson, "Spin-based reader-writer synchronization for
 * multiprocessor real-time systems", 2010): phases of readers and of one writer alternate while both wait; a
 * phase of readers lets in all who wait when it begins, and later ones only while no writer waits; writers
 * come in the order they came. So a reader waits for one writer at most, and no writer starves.
 *
 * Who is inside and who waits is guarded by a latch. The lock is handed over: whoever releases decides who is
 * next, so it is never free while somebody waits. A waiter's node is on its stack; it is in a queue, or has
 * been taken out of it and will be granted. A signal handler that is to run makes a thread give up its place.
 *
 * Memory order: the latch orders all that is done with it; a grant is a release, the look at it an acquire.
 */
#ifndef CL_WAIT_RW_H
#define CL_WAIT_RW_H

#include "latch.h"
#include "wait_mutex.h"

typedef struct cl_rw_waiter {
    _Atomic uint32_t granted; /* what it sleeps on */
    int queued;               /* guarded by the latch */
    struct cl_rw_waiter *before, *after;
} cl_rw_waiter;

typedef struct {
    cl_rw_waiter *first, *last;
} cl_rw_queue;

/* What the Python types RWLock and RWLockSide begin with. */
typedef struct {
    PyObject_HEAD
    cl_lock *side; /* what acquire() and release() are about */
} cl_rw_face;

typedef struct {
    cl_rw_face face; /* its side is `write` */
    _Atomic uint32_t latch;
    _Atomic uint32_t readers, writers; /* inside; changed with the latch only */
    cl_rw_queue reads, writes;         /* who waits */
    cl_lock read, write;               /* what is recorded of the sides: no Python objects */
    PyObject *weak_references;
} cl_rwlock;

static inline cl_rwlock *
cl_rw_of(cl_lock *side)
{
    size_t offset = side->kind == CL_KIND_READ ? offsetof(cl_rwlock, read) : offsetof(cl_rwlock, write);
    return (cl_rwlock *)(void *)((char *)side - offset);
}

static inline cl_lock *
cl_rw_other(cl_lock *side)
{
    cl_rwlock *self = cl_rw_of(side);
    return side->kind == CL_KIND_READ ? &self->write : &self->read;
}

static uint32_t
cl_rw_inside(cl_lock *side)
{
    cl_rwlock *self = cl_rw_of(side);
    return atomic_load_explicit(side->kind == CL_KIND_READ ? &self->readers : &self->writers,
                                memory_order_relaxed);
}

/* The side that those have who are in the way of whoever waits. */
static cl_lock *
cl_rw_in_the_way(cl_lock *side)
{
    cl_rwlock *self = cl_rw_of(side);
    return cl_rw_inside(&self->write) != 0 ? &self->write : &self->read;
}

static void
cl_rw_enqueue(cl_rw_queue *queue, cl_rw_waiter *waiter)
{
    waiter->queued = 1;
    waiter->before = queue->last;
    *(queue->last == NULL ? &queue->first : &queue->last->after) = waiter;
    queue->last = waiter;
}

static void
cl_rw_dequeue(cl_rw_queue *queue, cl_rw_waiter *waiter)
{
    waiter->queued = 0;
    *(waiter->before == NULL ? &queue->first : &waiter->before->after) = waiter->after;
    *(waiter->after == NULL ? &queue->last : &waiter->after->before) = waiter->before;
    waiter->before = waiter->after = NULL;
}

/* All who wait to read are inside from now on; call with the latch, and cl_rw_grant() them without. */
static cl_rw_waiter *
cl_rw_admit_readers(cl_rwlock *self)
{
    cl_rw_waiter *admitted = self->reads.first;
    uint32_t count = 0;
    for (cl_rw_waiter *waiter = admitted; waiter != NULL; waiter = waiter->after) {
        waiter->queued = 0;
        count++;
    }
    self->reads = (cl_rw_queue){NULL, NULL};
    atomic_store_explicit(&self->readers, cl_rw_inside(&self->read) + count, memory_order_relaxed);
    return admitted;
}

/* Wakes those who have been admitted. A node is gone as soon as its thread sees the grant. */
static void
cl_rw_grant(cl_rw_waiter *waiter)
{
    while (waiter != NULL) {
        cl_rw_waiter *after = waiter->after;
        _Atomic uint32_t *word = &waiter->granted;
        atomic_store_explicit(word, 1, memory_order_release);
        cl_unpark_one(word); /* of a word that may be something else by now: a spurious wake-up at worst */
        waiter = after;
    }
}

/* Enters at once if that is fair. Call with the latch. */
static int
cl_rw_enter(cl_rwlock *self, int kind)
{
    uint32_t readers = cl_rw_inside(&self->read);
    if (cl_rw_inside(&self->write) != 0 || self->writes.first != NULL
        || (kind == CL_KIND_WRITE && readers != 0)) {
        return 0;
    }
    if (kind == CL_KIND_WRITE) {
        atomic_store_explicit(&self->writers, 1, memory_order_relaxed);
    }
    else {
        atomic_store_explicit(&self->readers, readers + 1, memory_order_relaxed);
    }
    return 1;
}

static int
cl_rw_try(cl_lock *side)
{
    cl_rwlock *self = cl_rw_of(side);
    cl_latch_take(&self->latch);
    int entered = cl_rw_enter(self, side->kind);
    cl_latch_give(&self->latch);
    return entered;
}

/* CL_FREE: nobody was inside on this side. */
static uint32_t
cl_rw_unlock(cl_lock *side)
{
    cl_rwlock *self = cl_rw_of(side);
    cl_rw_waiter *next = NULL;
    cl_latch_take(&self->latch);
    uint32_t inside = cl_rw_inside(side);
    if (inside == 0) {
        cl_latch_give(&self->latch);
        return CL_FREE;
    }
    atomic_store_explicit(side->kind == CL_KIND_READ ? &self->readers : &self->writers, inside - 1,
                          memory_order_relaxed);
    if (side->kind == CL_KIND_WRITE && self->reads.first != NULL) {
        next = cl_rw_admit_readers(self);
    }
    else if (inside == 1 && self->writes.first != NULL) {
        next = self->writes.first;
        cl_rw_dequeue(&self->writes, next);
        atomic_store_explicit(&self->writers, 1, memory_order_relaxed);
    }
    cl_latch_give(&self->latch);
    cl_rw_grant(next);
    return CL_HELD;
}

/* Leaves the queue. 0: it has been admitted, and the grant is on its way. */
static int
cl_rw_leave(cl_rwlock *self, int kind, cl_rw_waiter *waiter)
{
    cl_rw_waiter *admitted = NULL;
    cl_latch_take(&self->latch);
    int was_queued = waiter->queued;
    if (was_queued) {
        cl_rw_dequeue(kind == CL_KIND_READ ? &self->reads : &self->writes, waiter);
        /* Readers that waited only because a writer did need not any more. */
        if (self->writes.first == NULL && cl_rw_inside(&self->write) == 0) {
            admitted = cl_rw_admit_readers(self);
        }
    }
    cl_latch_give(&self->latch);
    cl_rw_grant(admitted);
    return was_queued;
}

static void
cl_rw_reset(cl_rwlock *self)
{
    self->reads = self->writes = (cl_rw_queue){NULL, NULL};
    atomic_store_explicit(&self->readers, 0, memory_order_relaxed);
    atomic_store_explicit(&self->writers, 0, memory_order_relaxed);
    atomic_store_explicit(&self->latch, 0, memory_order_release);
}

static int
cl_wait_rw(cl_lock *side, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    cl_rwlock *self = cl_rw_of(side);
    cl_rw_waiter mine = {0};
    cl_latch_take(&self->latch);
    int entered = cl_rw_enter(self, side->kind);
    if (!entered) {
        cl_rw_enqueue(side->kind == CL_KIND_READ ? &self->reads : &self->writes, &mine);
    }
    cl_latch_give(&self->latch);
    while (!entered && atomic_load_explicit(&mine.granted, memory_order_acquire) == 0) {
        uint64_t before = timed ? cl_now() : 0;
        /* Where signals cannot be looked for from here, the place in the queue is worth more than they are. */
        int woken = parts->alert && cl_signal_pending() >= 0 ? cl_park_alert(&mine.granted, 0, deadline)
                                                             : cl_park(&mine.granted, 0, deadline);
        if (timed) {
            parts->park_ns += cl_now() - before;
        }
        if (woken == CL_PARK_TIMED_OUT
            || (woken == CL_PARK_SIGNAL && parts->alert && cl_signal_pending() != 0)) {
            if (cl_rw_leave(self, side->kind, &mine)) {
                return woken == CL_PARK_TIMED_OUT ? CL_WAIT_TIMED_OUT : CL_WAIT_SIGNAL;
            }
            deadline = CL_FOREVER;
            parts->alert = 0; /* the grant is on its way: the signal has to wait for that */
        }
    }
    parts->acquired_at = timed ? cl_now_after() : 0;
    return CL_WAIT_ACQUIRED;
}

#endif
