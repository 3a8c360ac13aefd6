/* The Python type Channel: items go from any threads to one, in order, through a list (channel_list.h).
 *
 * Who can go on does so at once. Else it sleeps without the GIL: the receiver on `idle`, which a sender
 * resets; senders on `room`, which the receiver counts up for each item that it takes while some wait. What
 * is waited for is an item, or room: coordination, on one entry of the trace.
 *
 * One thread receives at a time, and the next may be another: leaving is a release and entering an acquire,
 * so that it finds the list as the last one left it. Signal handlers run while the thread is neither the
 * receiver nor among the senders that wait, and may use the channel. In a forked child nobody else does:
 * it has the items, and no receiver.
 */
#ifndef CL_CHANNEL_H
#define CL_CHANNEL_H

#include "channel_list.h"
#include "coordination.h"
#include "latch.h"
#include "lock_family.h"

typedef struct cl_channel {
    cl_lock lock;      /* first: its name, its place in the trace and, of receivers, who woke them */
    cl_lock room_lock; /* who woke senders; nothing else of it is used */
    cl_channel_list list;
    _Atomic uint32_t receiving; /* some thread is about to take an item */
    _Atomic uint32_t idle;      /* 1: it sleeps, or is about to */
    _Atomic uint32_t senders;   /* that sleep, or are about to */
    _Atomic uint32_t room;
    struct cl_channel *before, *after; /* guarded by cl_channels.latch */
} cl_channel;

/* All channels, so that a forked child can set them free. */
static struct {
    _Atomic uint32_t latch;
    cl_channel *any;
} cl_channels;

static PyObject *cl_closed_error, *cl_channel_text; /* kept */

static void
cl_channels_before_fork(void)
{
    cl_latch_take(&cl_channels.latch);
}

static void
cl_channels_in_parent(void)
{
    cl_latch_give(&cl_channels.latch);
}

static void
cl_channels_in_child(void)
{
    for (cl_channel *one = cl_channels.any; one != NULL; one = one->after) {
        atomic_store_explicit(&one->receiving, 0, memory_order_relaxed);
        atomic_store_explicit(&one->idle, 0, memory_order_relaxed);
        atomic_store_explicit(&one->senders, 0, memory_order_relaxed);
    }
    cl_latch_give(&cl_channels.latch);
}

static void
cl_channel_wake_receiver(cl_channel *self)
{
    if (__builtin_expect(atomic_load_explicit(&self->idle, memory_order_relaxed) != 0, 0)) {
        cl_coordination_wake(&self->lock);
        if (atomic_exchange_explicit(&self->idle, 0, memory_order_release) != 0) {
            cl_unpark_one(&self->idle);
        }
    }
}

/* CL_CHANNEL_DONE: the node is the channel's. */
static inline int
cl_channel_put(cl_channel *self, cl_channel_node *node)
{
    int result = cl_channel_add(&self->list, node);
    if (result == CL_CHANNEL_DONE) {
        cl_channel_fence();
        cl_channel_wake_receiver(self);
    }
    return result;
}

/* The oldest item, or NULL; of the receiver. */
static inline PyObject *
cl_channel_take(cl_channel *self)
{
    PyObject *item = cl_channel_remove(&self->list);
    if (item != NULL) {
        cl_channel_fence();
        if (__builtin_expect(atomic_load_explicit(&self->senders, memory_order_relaxed) != 0, 0)) {
            cl_coordination_wake(&self->room_lock);
            atomic_fetch_add_explicit(&self->room, 1, memory_order_release);
            cl_unpark_one(&self->room);
        }
    }
    return item;
}

/* -1: another one is the receiver, an exception. */
static int
cl_channel_enter(cl_channel *self)
{
    if (__builtin_expect(atomic_exchange_explicit(&self->receiving, 1, memory_order_acquire) == 0, 1)) {
        return 0;
    }
    PyErr_Format(PyExc_RuntimeError,
                 "%R has a receiver: another thread is in receive(), and one receives at a time", self);
    return -1;
}

static inline void
cl_channel_leave(cl_channel *self)
{
    atomic_store_explicit(&self->receiving, 0, memory_order_release);
}

static int
cl_channel_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline, int alert)
{
    PyThreadState *tstate = PyEval_SaveThread();
    int woken = alert ? cl_park_alert(word, expected, deadline) : cl_park(word, expected, deadline);
    PyEval_RestoreThread(tstate);
    return woken;
}

/* Ends a wait's record. An exception that is set stays so. */
static void
cl_channel_waited(cl_channel *self, unsigned token, int result, cl_lock *woken)
{
    static const int outcome[] = {
        [CL_CHANNEL_DONE] = CL_ACQUIRED, [CL_CHANNEL_NOT_NOW] = CL_TIMED_OUT,
        [CL_CHANNEL_IS_CLOSED] = CL_ACQUIRED, /* what ended it has a stack, as with an item */
        [CL_CHANNEL_FAILED] = CL_INTERRUPTED};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    cl_coordination_end(&self->lock, token, outcome[result], woken);
    PyErr_Restore(type, value, traceback);
}

static int
cl_channel_await_item(cl_channel *self, uint64_t deadline, PyObject **item)
{
    int alert = cl_is_main_thread(), result = CL_CHANNEL_NOT_NOW, woken = CL_PARK_WOKEN;
    unsigned token = cl_coordination_begin(&self->lock, CL_COORDINATION,
                                           deadline == CL_FOREVER ? 0 : CL_WAIT_TIMEOUT_GIVEN, 0, 0, 0);
    for (;;) {
        atomic_store_explicit(&self->idle, 1, memory_order_relaxed);
        cl_channel_fence();
        *item = cl_channel_take(self);
        if (*item != NULL || cl_channel_is_over(&self->list)) {
            result = *item != NULL ? CL_CHANNEL_DONE : CL_CHANNEL_IS_CLOSED;
            break;
        }
        if (woken == CL_PARK_TIMED_OUT) {
            break;
        }
        woken = cl_channel_sleep(&self->idle, 1, deadline, alert);
        if (woken == CL_PARK_SIGNAL && alert) {
            atomic_store_explicit(&self->idle, 0, memory_order_relaxed);
            cl_channel_leave(self);
            if (Py_MakePendingCalls() < 0 || cl_channel_enter(self) < 0) {
                cl_channel_waited(self, token, CL_CHANNEL_FAILED, &self->lock);
                return CL_CHANNEL_FAILED;
            }
        }
    }
    atomic_store_explicit(&self->idle, 0, memory_order_relaxed);
    cl_channel_leave(self);
    cl_channel_waited(self, token, result, &self->lock);
    return result;
}

/* The next item, once there is one. */
static int
cl_channel_get(cl_channel *self, int blocks, uint64_t deadline, PyObject **item)
{
    if (cl_channel_enter(self) < 0) {
        return CL_CHANNEL_FAILED;
    }
    *item = cl_channel_take(self);
    int result = *item != NULL                       ? CL_CHANNEL_DONE
                 : cl_channel_is_over(&self->list) ? CL_CHANNEL_IS_CLOSED
                                                     : CL_CHANNEL_NOT_NOW;
    if (result == CL_CHANNEL_NOT_NOW && blocks) {
        return cl_channel_await_item(self, deadline, item);
    }
    cl_channel_leave(self);
    return result;
}

static int
cl_channel_await_room(cl_channel *self, cl_channel_node *node, uint64_t deadline)
{
    int alert = cl_is_main_thread(), result, woken = CL_PARK_WOKEN;
    uint32_t flags = CL_WAIT_ROOM | (deadline == CL_FOREVER ? 0 : CL_WAIT_TIMEOUT_GIVEN);
    unsigned token = cl_coordination_begin(&self->lock, CL_COORDINATION, flags, 0, 0, 0);
    atomic_fetch_add_explicit(&self->senders, 1, memory_order_relaxed);
    for (;;) {
        /* acquire: a thread that sees the count sees who it was that made room */
        uint32_t seen = atomic_load_explicit(&self->room, memory_order_acquire);
        cl_channel_fence();
        result = cl_channel_put(self, node);
        if (result != CL_CHANNEL_NOT_NOW || woken == CL_PARK_TIMED_OUT) {
            break;
        }
        woken = cl_channel_sleep(&self->room, seen, deadline, alert);
        if (woken == CL_PARK_SIGNAL && alert) {
            atomic_fetch_sub_explicit(&self->senders, 1, memory_order_relaxed);
            int failed = Py_MakePendingCalls() < 0;
            atomic_fetch_add_explicit(&self->senders, 1, memory_order_relaxed);
            if (failed) {
                result = CL_CHANNEL_FAILED;
                break;
            }
        }
    }
    atomic_fetch_sub_explicit(&self->senders, 1, memory_order_relaxed);
    cl_channel_waited(self, token, result, &self->room_lock);
    return result;
}

/* Sends the item, once there is room. */
static int
cl_channel_give(cl_channel *self, PyObject *item, int blocks, uint64_t deadline)
{
    cl_channel_node *node = PyMem_Malloc(sizeof *node);
    if (node == NULL) {
        PyErr_NoMemory();
        return CL_CHANNEL_FAILED;
    }
    node->item = Py_NewRef(item);
    int result = cl_channel_put(self, node);
    if (result == CL_CHANNEL_NOT_NOW && blocks) {
        result = cl_channel_await_room(self, node, deadline);
    }
    if (result != CL_CHANNEL_DONE) {
        Py_DECREF(item); /* the caller has it as well */
        PyMem_Free(node);
    }
    return result;
}

/* Nothing can be sent from now on; who waits goes on. */
static void
cl_channel_end(cl_channel *self)
{
    atomic_fetch_or_explicit(&self->list.count, CL_CHANNEL_CLOSED, memory_order_relaxed);
    cl_channel_fence();
    cl_channel_wake_receiver(self);
    if (atomic_load_explicit(&self->senders, memory_order_relaxed) != 0) {
        cl_coordination_wake(&self->room_lock);
        atomic_fetch_add_explicit(&self->room, 1, memory_order_release);
        cl_unpark_all(&self->room);
    }
}

#endif
