/* How an McsLock waits: each thread hangs a node of its own on the end of a queue and spins on that, so a
 * release touches one waiter's cache line and no other's. First come, first served.
 *
 * J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
 * multiprocessors" (1991), in the form of K42 (IBM Research, 2002): the node of the holder is in the lock,
 * so whoever releases needs none, and a free lock is taken without one. Giving up is as in M. Chabbi,
 * A. Amer, S. Wen and X. Liu, "An efficient abortable-locking protocol for multi-level NUMA systems" (2017):
 * the node stays in the queue, marked, and the release that comes to it passes it over; a thread that comes
 * back before that finds its node and waits in its old place. So no thread has more than one node here.
 *
 * Nodes are the lock's and freed with it: one that is out of the queue is used again. Each changes hands by
 * a compare-and-swap of its state:
 *
 *   UNUSED -> WAITING   by who takes it;            WAITING -> GRANTED  by the release
 *   WAITING -> LEFT     by who gives up;            LEFT -> WAITING     by the same thread, back again
 *   LEFT -> PASSED      by the release, which owns it until it is out of the queue;  PASSED -> UNUSED
 *
 * Memory order: a grant, and the exchange that frees the lock, are releases; their counterparts, a look at
 * the own node and the exchange that takes a free lock, are acquires. `next` is stored with release and
 * loaded with acquire, so that a node is whole before another thread follows the link.
 */
#ifndef CL_WAIT_MCS_H
#define CL_WAIT_MCS_H

#include "spinner.h"

#define CL_CACHE_LINE 64

enum { CL_MCS_UNUSED, CL_MCS_WAITING, CL_MCS_GRANTED, CL_MCS_LEFT, CL_MCS_PASSED };

typedef struct cl_mcs_node {
    _Atomic uint32_t state; /* alone in its line but for `next`, which is written once a wait */
    _Atomic(struct cl_mcs_node *) next;
    char apart[CL_CACHE_LINE - 2 * sizeof(void *)];
    struct cl_mcs_node *older;   /* in the list of all nodes; does not change */
    _Atomic unsigned long owner; /* threading.get_ident() of who waits, or gave up */
} cl_mcs_node;

typedef struct {
    cl_lock lock; /* first; its `state` is CL_HELD from an acquire to the release that ends it */
    _Atomic(cl_mcs_node *) tail;  /* NULL: free; &holder: held, nobody waits */
    _Atomic(cl_mcs_node *) nodes; /* all there are */
    _Atomic uint32_t left;        /* about how many nodes are LEFT */
    cl_mcs_node holder;
} cl_mcs_lock;

static int
cl_mcs_take(_Atomic uint32_t *state, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(state, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* The node that this thread left in the queue; NULL: it has left none, or that has been passed over. */
static cl_mcs_node *
cl_mcs_rejoin(cl_mcs_lock *self)
{
    unsigned long me = PyThread_get_thread_ident();
    cl_mcs_node *node = atomic_load_explicit(&self->nodes, memory_order_acquire);
    for (; node != NULL; node = node->older) {
        if (atomic_load_explicit(&node->owner, memory_order_relaxed) == me
            && cl_mcs_take(&node->state, CL_MCS_LEFT, CL_MCS_WAITING)) {
            atomic_fetch_sub_explicit(&self->left, 1, memory_order_relaxed);
            return node;
        }
    }
    return NULL;
}

/* A node that is in no queue, for this thread; NULL without memory. */
static cl_mcs_node *
cl_mcs_node_get(cl_mcs_lock *self)
{
    cl_mcs_node *head = atomic_load_explicit(&self->nodes, memory_order_acquire), *node = head;
    while (node != NULL && !cl_mcs_take(&node->state, CL_MCS_UNUSED, CL_MCS_WAITING)) {
        node = node->older;
    }
    if (node == NULL) {
        node = aligned_alloc(CL_CACHE_LINE, 2 * CL_CACHE_LINE);
        if (node == NULL) {
            return NULL;
        }
        memset(node, 0, sizeof *node);
        atomic_store_explicit(&node->state, CL_MCS_WAITING, memory_order_relaxed);
        do {
            node->older = head;
        } while (!atomic_compare_exchange_weak_explicit(&self->nodes, &head, node, memory_order_release,
                                                        memory_order_acquire));
    }
    atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&node->owner, PyThread_get_thread_ident(), memory_order_relaxed);
    return node;
}

/* What comes after a node that is not the last: its thread has taken the tail and is about to link it. */
static cl_mcs_node *
cl_mcs_next(cl_mcs_node *node)
{
    cl_mcs_node *next;
    while ((next = atomic_load_explicit(&node->next, memory_order_acquire)) == NULL) {
        sched_yield(); /* it may have been preempted between the two */
    }
    return next;
}

static void
cl_mcs_mark_held(cl_mcs_lock *self)
{
    atomic_store_explicit(&self->lock.state, CL_HELD, memory_order_relaxed);
}

static int
cl_mcs_try(cl_mcs_lock *self)
{
    cl_mcs_node *none = NULL;
    if (!atomic_compare_exchange_strong_explicit(&self->tail, &none, &self->holder, memory_order_acquire,
                                                 memory_order_relaxed)) {
        return 0;
    }
    cl_mcs_mark_held(self);
    return 1;
}

/* Puts the node at the end of the queue; 0: the lock was free, and is ours. */
static int
cl_mcs_join(cl_mcs_lock *self, cl_mcs_node *node)
{
    for (;;) {
        cl_mcs_node *last = atomic_load_explicit(&self->tail, memory_order_relaxed);
        if (last == NULL) {
            if (cl_mcs_try(self)) {
                return 0;
            }
        }
        /* acq_rel: the node is whole for whoever finds it, and the last one for us */
        else if (atomic_compare_exchange_weak_explicit(&self->tail, &last, node, memory_order_acq_rel,
                                                       memory_order_relaxed)) {
            atomic_store_explicit(&last->next, node, memory_order_release);
            return 1;
        }
    }
}

/* The lock has been granted to this node: the one in the lock takes its place. */
static void
cl_mcs_enter(cl_mcs_lock *self, cl_mcs_node *node)
{
    cl_mcs_node *next = atomic_load_explicit(&node->next, memory_order_acquire), *last = node;
    atomic_store_explicit(&self->holder.next, next, memory_order_relaxed);
    /* release: whoever finds the holder's node at the tail hangs itself on after we have cleared it */
    if (next == NULL
        && !atomic_compare_exchange_strong_explicit(&self->tail, &last, &self->holder,
                                                    memory_order_release, memory_order_relaxed)) {
        atomic_store_explicit(&self->holder.next, cl_mcs_next(node), memory_order_relaxed);
    }
    cl_mcs_mark_held(self);
    atomic_store_explicit(&node->state, CL_MCS_UNUSED, memory_order_release);
}

/* Grants the lock to the first from `node` on that still waits, or frees it. */
static void
cl_mcs_pass_on(cl_mcs_lock *self, cl_mcs_node *node)
{
    while (!cl_mcs_take(&node->state, CL_MCS_WAITING, CL_MCS_GRANTED)) {
        if (!cl_mcs_take(&node->state, CL_MCS_LEFT, CL_MCS_PASSED)) {
            continue; /* it is back */
        }
        atomic_fetch_sub_explicit(&self->left, 1, memory_order_relaxed);
        cl_mcs_node *next = atomic_load_explicit(&node->next, memory_order_acquire), *last = node;
        if (next == NULL) {
            atomic_store_explicit(&self->holder.next, NULL, memory_order_relaxed);
            if (atomic_compare_exchange_strong_explicit(&self->tail, &last, NULL, memory_order_release,
                                                        memory_order_relaxed)) {
                atomic_store_explicit(&node->state, CL_MCS_UNUSED, memory_order_release);
                return;
            }
            next = cl_mcs_next(node);
        }
        atomic_store_explicit(&node->state, CL_MCS_UNUSED, memory_order_release);
        node = next;
    }
}

/* CL_FREE if the lock was not held, else CL_HELD. */
static uint32_t
cl_mcs_unlock(cl_mcs_lock *self)
{
    /* Of two that release one hold, without a GIL to part them, one fails here. */
    if (atomic_exchange_explicit(&self->lock.state, CL_FREE, memory_order_relaxed) == CL_FREE) {
        return CL_FREE;
    }
    cl_mcs_node *next = atomic_load_explicit(&self->holder.next, memory_order_acquire);
    cl_mcs_node *last = &self->holder;
    if (next == NULL) {
        if (atomic_compare_exchange_strong_explicit(&self->tail, &last, NULL, memory_order_release,
                                                    memory_order_relaxed)) {
            return CL_HELD;
        }
        next = cl_mcs_next(&self->holder);
    }
    cl_mcs_pass_on(self, next);
    return CL_HELD;
}

static int
cl_mcs_is_held(cl_mcs_lock *self)
{
    return atomic_load_explicit(&self->tail, memory_order_relaxed) != NULL;
}

static void
cl_mcs_reset(cl_mcs_lock *self)
{
    cl_mcs_node *node = atomic_load_explicit(&self->nodes, memory_order_acquire);
    for (; node != NULL; node = node->older) {
        atomic_store_explicit(&node->state, CL_MCS_UNUSED, memory_order_relaxed);
    }
    atomic_store_explicit(&self->holder.next, NULL, memory_order_relaxed);
    atomic_store_explicit(&self->left, 0, memory_order_relaxed);
    atomic_store_explicit(&self->tail, NULL, memory_order_release);
}

static void
cl_mcs_free(cl_mcs_lock *self)
{
    cl_mcs_node *node = atomic_load_explicit(&self->nodes, memory_order_acquire), *older;
    for (; node != NULL; node = older) {
        older = node->older;
        free(node);
    }
}

/* Gives the place of the node up. 0: the lock had just been granted to it. */
static int
cl_mcs_leave(cl_mcs_lock *self, cl_mcs_node *node)
{
    atomic_fetch_add_explicit(&self->left, 1, memory_order_relaxed);
    if (cl_mcs_take(&node->state, CL_MCS_WAITING, CL_MCS_LEFT)) {
        return 1;
    }
    atomic_fetch_sub_explicit(&self->left, 1, memory_order_relaxed);
    return 0;
}

static int
cl_wait_mcs(cl_mcs_lock *self, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    cl_spinner spinner = cl_spinner_begin(&self->lock, deadline, timed);
    cl_mcs_node *node =
        atomic_load_explicit(&self->left, memory_order_relaxed) == 0 ? NULL : cl_mcs_rejoin(self);
    int result = CL_SPIN_ON;
    if (node == NULL && (node = cl_mcs_node_get(self)) != NULL && !cl_mcs_join(self, node)) {
        atomic_store_explicit(&node->state, CL_MCS_UNUSED, memory_order_release);
        result = CL_WAIT_ACQUIRED;
    }
    while (result == CL_SPIN_ON) {
        if (node == NULL) { /* no memory for a place in the queue */
            result = cl_mcs_try(self) ? CL_WAIT_ACQUIRED : cl_spinner_round(&spinner, 1);
        }
        else if (atomic_load_explicit(&node->state, memory_order_acquire) == CL_MCS_GRANTED) {
            cl_mcs_enter(self, node);
            result = CL_WAIT_ACQUIRED;
        }
        else {
            result = cl_spinner_round(&spinner, 1);
            if (result != CL_SPIN_ON && !cl_mcs_leave(self, node)) {
                result = CL_SPIN_ON;
            }
        }
    }
    parts->acquired_at = result == CL_WAIT_ACQUIRED && timed ? cl_now_after() : 0;
    cl_spinner_end(&spinner, parts);
    return result;
}

#endif
