/* A word that keeps a few instructions to one thread at a time, where these are part of a lock themselves. */
#ifndef CL_LATCH_H
#define CL_LATCH_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

static inline void
cl_latch_take(_Atomic uint32_t *latch)
{
    /* acquire, and release below: what it guards is as the last one left it */
    while (atomic_exchange_explicit(latch, 1, memory_order_acquire) != 0) {
        sched_yield(); /* whoever has it may have been preempted */
    }
}

static inline void
cl_latch_give(_Atomic uint32_t *latch)
{
    atomic_store_explicit(latch, 0, memory_order_release);
}

#endif
