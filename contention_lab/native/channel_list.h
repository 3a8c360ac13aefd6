/* The items of a Channel: a linked list to which any thread adds and from which one takes, without a lock.
 *
 * It is D. Vyukov's queue for many producers and one consumer (2010). A sender makes its node the last one
 * with one exchange, and then links it to the one that was the last before. The receiver follows the links;
 * `first`, the node whose item it took last, stays in the list until it has seen the next, so that a sender
 * never writes to a node that has been freed.
 *
 * How many items there are is counted apart, in one word with the flag "closed": who has been counted in has
 * room, and its item will be received, whoever closes the channel meanwhile. From there to the link it is a
 * few instructions of a thread that runs no Python code between them: with a GIL the receiver never sees
 * them half done, without one it yields its core until they are done.
 *
 * Memory order: the link is a release and following it an acquire, so what a sender wrote before is visible
 * to the receiver; the exchange is both, since the node that it finds was filled by another sender. The
 * count orders nothing. That no sleeper is missed is the caller's business: see cl_channel_fence().
 */
#ifndef CL_CHANNEL_LIST_H
#define CL_CHANNEL_LIST_H

#include "lock_object.h"

#define CL_CHANNEL_CLOSED 1u
#define CL_CHANNEL_ITEM 2u /* in the count */

typedef struct cl_channel_node {
    _Atomic(struct cl_channel_node *) next;
    PyObject *item; /* owned; NULL once it has been taken */
} cl_channel_node;

typedef struct {
    _Atomic uint64_t count; /* CL_CHANNEL_ITEM for each item, and CL_CHANNEL_CLOSED */
    uint64_t limit;         /* of the count, UINT64_MAX none */
    cl_channel_node *first; /* the receiver's */
    _Atomic(cl_channel_node *) last;
    cl_channel_node root; /* the first `first` */
} cl_channel_list;

enum { CL_CHANNEL_DONE, CL_CHANNEL_NOT_NOW, CL_CHANNEL_IS_CLOSED, CL_CHANNEL_FAILED };

/* Between what a thread says and what it asks of others: "I shall sleep" and "is there something?" on one side,
 * "there is something" and "does anybody sleep?" on the other. Both are done with the GIL where there is one;
 * else one of the two must see what the other said (J. Dekker's algorithm). */
static inline void
cl_channel_fence(void)
{
    if (CL_FREE_THREADED) {
        atomic_thread_fence(memory_order_seq_cst);
    }
}

static void
cl_channel_list_init(cl_channel_list *list, uint64_t limit)
{
    list->limit = limit;
    list->first = &list->root;
    atomic_store_explicit(&list->last, &list->root, memory_order_relaxed);
}

/* Whether there is nothing, and nothing will come. */
static inline int
cl_channel_is_over(cl_channel_list *list)
{
    return atomic_load_explicit(&list->count, memory_order_relaxed) == CL_CHANNEL_CLOSED;
}

/* CL_CHANNEL_DONE: the list has the node, whose item is filled in. */
static inline int
cl_channel_add(cl_channel_list *list, cl_channel_node *node)
{
    uint64_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    do {
        if (count & CL_CHANNEL_CLOSED) {
            return CL_CHANNEL_IS_CLOSED;
        }
        if (count >= list->limit) {
            return CL_CHANNEL_NOT_NOW;
        }
    } while (!atomic_compare_exchange_weak_explicit(&list->count, &count, count + CL_CHANNEL_ITEM,
                                                    memory_order_relaxed, memory_order_relaxed));
    atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
    cl_channel_node *before = atomic_exchange_explicit(&list->last, node, memory_order_acq_rel);
    atomic_store_explicit(&before->next, node, memory_order_release);
    return CL_CHANNEL_DONE;
}

/* The oldest item, a reference that is now the caller's; NULL if there is none. Of one thread at a time. */
static inline PyObject *
cl_channel_remove(cl_channel_list *list)
{
    if (atomic_load_explicit(&list->count, memory_order_relaxed) < CL_CHANNEL_ITEM) {
        return NULL;
    }
    cl_channel_node *first = list->first, *next;
    while ((next = atomic_load_explicit(&first->next, memory_order_acquire)) == NULL) {
        sched_yield(); /* its sender has been counted in, and is about to link it */
    }
    PyObject *item = next->item;
    next->item = NULL;
    list->first = next;
    atomic_fetch_sub_explicit(&list->count, CL_CHANNEL_ITEM, memory_order_relaxed);
    if (first != &list->root) {
        PyMem_Free(first);
    }
    return item;
}

static int
cl_channel_list_traverse(cl_channel_list *list, visitproc visit, void *arg)
{
    cl_channel_node *node = list->first;
    while (node != NULL) { /* NULL: not made yet */
        Py_VISIT(node->item);
        node = atomic_load_explicit(&node->next, memory_order_relaxed);
    }
    return 0;
}

/* Drops all items, which may run any code. */
static void
cl_channel_list_clear(cl_channel_list *list)
{
    PyObject *item;
    while ((item = cl_channel_remove(list)) != NULL) {
        Py_DECREF(item);
    }
}

/* Call once it is empty and nobody's any more. */
static void
cl_channel_list_free(cl_channel_list *list)
{
    if (list->first != &list->root) {
        PyMem_Free(list->first);
    }
}

#endif
