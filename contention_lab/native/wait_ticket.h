/* How a TicketLock waits: each thread draws a ticket and spins until that number is served. First come,
 * first served; all watch one word, so each release takes its cache line from every waiter.
 *
 * J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
 * multiprocessors" (1991). A ticket cannot be handed back if others have been drawn after it, so whoever
 * gives up (a timeout, a signal handler that is to run) leaves its number in a list, and the release that
 * would serve it goes on to the next. A thread that comes back before that takes its old place.
 *
 * Memory order: `serving` is stored with release and loaded with acquire, which hands over what was written
 * under the lock. A number is given up in the list first and looked for at `serving` after; a release sets
 * `serving` first and looks at the list after. All four are sequentially consistent, so at least one of the
 * two sees the other, and under the latch only one of them takes the number.
 */
#ifndef CL_WAIT_TICKET_H
#define CL_WAIT_TICKET_H

#include "latch.h"
#include "spinner.h"

typedef struct {
    uint32_t number;
    unsigned long owner; /* threading.get_ident() */
} cl_ticket;

typedef struct {
    cl_lock lock; /* first: the methods of cl_lock apply */
    _Atomic uint32_t next;
    _Atomic uint32_t serving;
    _Atomic uint32_t left;  /* how many tickets have been given up */
    _Atomic uint32_t latch; /* guards the list, for a few instructions */
    cl_ticket *list;        /* `left` tickets */
    uint32_t room;
} cl_ticket_lock;

/* Takes the ticket with this number, or of this owner, out of the list. Call with the latch. */
static int
cl_ticket_take_out(cl_ticket_lock *self, uint32_t number, unsigned long owner, uint32_t *found)
{
    uint32_t left = atomic_load_explicit(&self->left, memory_order_relaxed);
    for (uint32_t i = 0; i < left; i++) {
        if (owner != 0 ? self->list[i].owner == owner : self->list[i].number == number) {
            *found = self->list[i].number;
            self->list[i] = self->list[left - 1];
            atomic_store_explicit(&self->left, left - 1, memory_order_relaxed);
            return 1;
        }
    }
    return 0;
}

/* The ticket that this thread gave up earlier, if its turn has not come yet, else a new one. */
static uint32_t
cl_ticket_draw(cl_ticket_lock *self)
{
    uint32_t mine;
    int found = 0;
    if (__builtin_expect(atomic_load_explicit(&self->left, memory_order_relaxed) != 0, 0)) {
        cl_latch_take(&self->latch);
        found = cl_ticket_take_out(self, 0, PyThread_get_thread_ident(), &mine);
        cl_latch_give(&self->latch);
    }
    /* relaxed: the order comes from `serving` */
    return found ? mine : atomic_fetch_add_explicit(&self->next, 1, memory_order_relaxed);
}

/* Gives a ticket up. 0: its turn has just come, and the lock is ours; or there is no memory to note it. */
static int
cl_ticket_leave(cl_ticket_lock *self, uint32_t mine)
{
    uint32_t last = mine + 1;
    /* The last one drawn goes back. If its turn came this moment, that frees the lock: hence release. */
    if (atomic_compare_exchange_strong_explicit(&self->next, &last, mine, memory_order_release,
                                                memory_order_relaxed)) {
        return 1;
    }
    int gone = 0;
    cl_latch_take(&self->latch);
    uint32_t left = atomic_load_explicit(&self->left, memory_order_relaxed);
    if (left == self->room) {
        uint32_t room = left == 0 ? 4 : 2 * left;
        cl_ticket *list = realloc(self->list, room * sizeof *list);
        if (list != NULL) {
            self->list = list;
            self->room = room;
        }
    }
    if (left < self->room) {
        self->list[left] = (cl_ticket){mine, PyThread_get_thread_ident()};
        atomic_store_explicit(&self->left, left + 1, memory_order_seq_cst);
        gone = atomic_load_explicit(&self->serving, memory_order_seq_cst) != mine;
        if (!gone) {
            atomic_store_explicit(&self->left, left, memory_order_relaxed);
        }
    }
    cl_latch_give(&self->latch);
    return gone;
}

static int
cl_ticket_is_held(cl_ticket_lock *self)
{
    uint32_t serving = atomic_load_explicit(&self->serving, memory_order_relaxed);
    return atomic_load_explicit(&self->next, memory_order_relaxed) != serving;
}

static int
cl_ticket_try(cl_ticket_lock *self)
{
    /* acquire: what the last holder wrote. If `serving` is old by now, `next` has gone on as well. */
    uint32_t serving = atomic_load_explicit(&self->serving, memory_order_acquire);
    return atomic_compare_exchange_strong_explicit(&self->next, &serving, serving + 1,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Serves the next number; CL_FREE if the lock was not held, else CL_HELD. */
static uint32_t
cl_ticket_unlock(cl_ticket_lock *self)
{
    uint32_t number = atomic_load_explicit(&self->serving, memory_order_relaxed);
    if (number == atomic_load_explicit(&self->next, memory_order_relaxed)
        || !atomic_compare_exchange_strong_explicit(&self->serving, &number, number + 1,
                                                    memory_order_seq_cst, memory_order_relaxed)) {
        return CL_FREE; /* the exchange fails if somebody else has released it as well */
    }
    if (__builtin_expect(atomic_load_explicit(&self->left, memory_order_seq_cst) != 0, 0)) {
        cl_latch_take(&self->latch);
        /* acquire: perhaps another thread has released it since, and we pass that on */
        number = atomic_load_explicit(&self->serving, memory_order_acquire);
        while (cl_ticket_take_out(self, number, 0, &number)) {
            /* Nobody has this number any more, so nobody else moves `serving`. */
            atomic_store_explicit(&self->serving, ++number, memory_order_release);
        }
        cl_latch_give(&self->latch);
    }
    return CL_HELD;
}

static void
cl_ticket_reset(cl_ticket_lock *self)
{
    atomic_store_explicit(&self->latch, 0, memory_order_relaxed);
    atomic_store_explicit(&self->left, 0, memory_order_relaxed);
    atomic_store_explicit(&self->serving, atomic_load_explicit(&self->next, memory_order_relaxed),
                          memory_order_release);
}

static int
cl_wait_ticket(cl_ticket_lock *self, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    cl_spinner spinner = cl_spinner_begin(&self->lock, deadline, timed);
    uint32_t mine = cl_ticket_draw(self);
    int result = CL_SPIN_ON;
    for (;;) {
        uint32_t ahead = mine - atomic_load_explicit(&self->serving, memory_order_acquire);
        if (ahead == 0) {
            parts->acquired_at = timed ? cl_now_after() : 0;
            result = CL_WAIT_ACQUIRED;
            break;
        }
        /* The longer the queue before us, the rarer we look: as that paper recommends. */
        result = cl_spinner_round(&spinner, ahead < CL_SPIN_BATCH ? ahead : CL_SPIN_BATCH);
        if (result != CL_SPIN_ON && cl_ticket_leave(self, mine)) {
            break;
        }
    }
    cl_spinner_end(&spinner, parts);
    return result;
}

#endif
