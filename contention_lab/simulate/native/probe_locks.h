/* The locks that are measured: textbook versions without any recording, one word or queue each.
 *
 * Acquiring is an acquire operation and releasing a release operation on the word that passes the lock
 * on; all else is relaxed. */
#ifndef CLS_PROBE_LOCKS_H
#define CLS_PROBE_LOCKS_H

#include <limits.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe_work.h"

enum { TEST_AND_SET, BACK_OFF, TICKET, MCS, PARKING_LOCK, ADAPTIVE, PROBE_KINDS };

#define BACK_OFF_LIMIT 1024
#define ADAPTIVE_ROUNDS 1000

typedef struct mcs_node {
    alignas(CACHE_LINE) _Atomic(struct mcs_node *) next;
    atomic_int waits;
} mcs_node;

typedef struct {
    alignas(CACHE_LINE) atomic_uint word; /* 0 free, 1 held, 2 held and somebody may sleep */
    alignas(CACHE_LINE) atomic_uint serving;
    alignas(CACHE_LINE) _Atomic(mcs_node *) tail;
} probe_lock;

static inline long
futex(atomic_uint *word, int operation, unsigned value)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static inline int
try_word(probe_lock *lock)
{
    unsigned free = 0;
    return atomic_load_explicit(&lock->word, memory_order_relaxed) == 0
           && atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_acquire,
                                                      memory_order_relaxed);
}

/* A word that says "somebody may sleep" makes the releaser wake one; whoever slept leaves it so. */
static inline void
sleep_for_word(probe_lock *lock)
{
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0) {
        futex(&lock->word, FUTEX_WAIT, 2);
    }
}

static inline void
lock_acquire(int kind, probe_lock *lock, mcs_node *node)
{
    switch (kind) {
    case TEST_AND_SET:
        while (!try_word(lock)) {
            relax();
        }
        break;
    case BACK_OFF:
        for (unsigned delay = 1; !try_word(lock);) {
            for (unsigned i = 0; i < delay; i++) {
                relax();
            }
            delay = delay < BACK_OFF_LIMIT ? 2 * delay : delay;
        }
        break;
    case TICKET: {
        unsigned mine = atomic_fetch_add_explicit(&lock->word, 1, memory_order_relaxed);
        while (atomic_load_explicit(&lock->serving, memory_order_acquire) != mine) {
            relax();
        }
        break;
    }
    case MCS: {
        atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
        atomic_store_explicit(&node->waits, 1, memory_order_relaxed);
        /* release: our node is ready before others see it; acquire: the lock, if nobody has it */
        mcs_node *before = atomic_exchange_explicit(&lock->tail, node, memory_order_acq_rel);
        if (before != NULL) {
            atomic_store_explicit(&before->next, node, memory_order_release);
            while (atomic_load_explicit(&node->waits, memory_order_acquire)) {
                relax();
            }
        }
        break;
    }
    case PARKING_LOCK:
        if (!try_word(lock)) {
            sleep_for_word(lock);
        }
        break;
    default:
        for (unsigned i = 0;; i++) {
            if (try_word(lock)) {
                break;
            }
            if (i == ADAPTIVE_ROUNDS) {
                sleep_for_word(lock);
                break;
            }
            relax();
        }
    }
}

static inline void
lock_release(int kind, probe_lock *lock, mcs_node *node)
{
    if (kind == TICKET) {
        unsigned mine = atomic_load_explicit(&lock->serving, memory_order_relaxed);
        atomic_store_explicit(&lock->serving, mine + 1, memory_order_release);
    }
    else if (kind == MCS) {
        mcs_node *next = atomic_load_explicit(&node->next, memory_order_acquire);
        if (next == NULL) {
            mcs_node *alone = node;
            if (atomic_compare_exchange_strong_explicit(&lock->tail, &alone, NULL,
                                                        memory_order_release,
                                                        memory_order_relaxed)) {
                return;
            }
            while ((next = atomic_load_explicit(&node->next, memory_order_acquire)) == NULL) {
                relax();
            }
        }
        atomic_store_explicit(&next->waits, 0, memory_order_release);
    }
    else if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2) {
        futex(&lock->word, FUTEX_WAKE, 1);
    }
}

#endif
