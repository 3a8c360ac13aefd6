/* Tries at a lock that failed: one a millisecond is recorded, and what a row of them amounts to. To a lock
 * it is the same whether a thread sleeps until it is free or asks again and again.
 */
#ifndef CL_FAILED_TRIES_H
#define CL_FAILED_TRIES_H

#include "lock_kind.h"

#define CL_TRY_RECORD_NS 1000000u /* failed tries in a loop: one record a millisecond, all counted */
#define CL_TRIES_GAP_NS 100000000u /* after a failed try: from here on the thread is not waiting any more */

/* What the victim sees of the holder at the start of its wait. */
static void
cl_wait_note_holder(cl_lock *lock, uint32_t epoch, cl_wait_record *wait)
{
    lock = cl_lock_in_the_way(lock);
    uint64_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
    if (atomic_load_explicit(&lock->hold_epoch, memory_order_relaxed) == epoch) {
        wait->holder = (uint32_t)(owner >> 32);
        wait->holder_site = (uint32_t)owner;
    }
}

static uint32_t
cl_victim_stack(cl_thread *thread, cl_wait_record *wait)
{
    if (!atomic_load_explicit(&thread->named, memory_order_relaxed)) {
        cl_thread_take_name(thread);
    }
    uint32_t id = cl_stack_capture(thread->frames, cl_session.stack_depth);
    if (id == 0) {
        cl_add(&thread->dropped_stacks, 1);
    }
    else if (((cl_stack_item *)cl_table_item(&cl_stacks, id))->depth & CL_STACK_TRUNCATED) {
        wait->flags |= CL_WAIT_STACK_TRUNCATED;
    }
    return id;
}

/* Ends a series of failed tries: the thread has acquired a lock, or has long been doing something else. */
static void
cl_tries_end(cl_thread *thread, uint64_t now)
{
    struct cl_tries *tries = &thread->tries;
    cl_wait_record *wait = &tries->record;
    int went_on = now - tries->last_ns > CL_TRIES_GAP_NS;
    wait->end_ns = went_on ? tries->last_ns : now;
    uint64_t length = wait->end_ns - wait->start_ns;
    /* Whoever is kept from the GIL or a core for long in the middle of a loop seems to go on: what it burnt until
     * then still counts. */
    uint64_t cpu_ns = (went_on ? tries->last_cpu_ns : cl_thread_cpu_ns()) - tries->cpu_ns;
    wait->spins = tries->count > UINT32_MAX ? UINT32_MAX : (uint32_t)tries->count;
    wait->spin_cpu_ns = cpu_ns < length ? cpu_ns : length;
    /* More than a try in a millisecond: it did nothing else, though it may have waited for the GIL. */
    int spun = tries->count * CL_TRY_RECORD_NS > length;
    wait->spin_ns = spun ? length : wait->spin_cpu_ns;
    wait->park_ns = length - wait->spin_ns;
    tries->count = 0;
    /* One try at a lock that the thread has itself asks whether it is held (Condition._is_owned): no wait. */
    int asked = wait->spins == 1 && wait->holder == thread->id;
    cl_block *block = length == 0 || asked ? NULL : cl_block_known(thread, wait->lock);
    if (block != NULL) {
        cl_add(&block->value[CL_C_WAIT_NS], length);
        cl_add(&block->value[CL_C_SPIN_NS], wait->spin_ns);
        cl_add(&block->value[CL_C_PARK_NS], wait->park_ns);
        cl_add(&block->value[CL_C_SPIN_CPU_NS], wait->spin_cpu_ns);
        cl_max(&block->value[CL_C_MAX_WAIT_NS], length);
        if (cl_session.level >= CL_LEVEL_PROFILE) {
            cl_thread_record(thread, CL_WAITS, wait, sizeof *wait);
        }
    }
}

static void
cl_record_failed_try(cl_lock *lock, cl_thread *thread, cl_block *block)
{
    struct cl_tries *tries = &thread->tries;
    uint64_t now = cl_now();
    cl_add(&block->value[CL_C_FAILED_TRIES], 1);
    if (tries->count != 0 && now - tries->last_ns > CL_TRIES_GAP_NS) {
        cl_tries_end(thread, now);
    }
    int first = tries->count++ == 0;
    tries->last_ns = now;
    if (cl_session.level == CL_LEVEL_COUNTERS && !first) {
        return;
    }
    if (!first && block->last_try_ns != 0 && now - block->last_try_ns < CL_TRY_RECORD_NS) {
        return;
    }
    cl_wait_record wait = {.start_ns = now, .end_ns = now, .lock = lock->id, .thread = thread->id,
                           .outcome = CL_FAILED_TRY};
    int due = block->last_try_ns == 0 || now - block->last_try_ns >= CL_TRY_RECORD_NS;
    if (cl_session.level >= CL_LEVEL_PROFILE) {
        /* What is being held blocks this thread, though it does not sleep: the hold is to be recorded. */
        atomic_store_explicit(&lock->gave_up, 1, memory_order_relaxed);
        cl_wait_note_holder(lock, thread->epoch, &wait);
        wait.waiters = atomic_load_explicit(&lock->waiters, memory_order_relaxed);
        wait.stack = cl_victim_stack(thread, &wait);
        wait.holder_stack = cl_holder_stack(wait.holder, thread->frames, cl_session.stack_depth);
        if (due) {
            block->last_try_ns = now + (now == 0);
            cl_thread_record(thread, CL_WAITS, &wait, sizeof wait);
        }
    }
    tries->last_cpu_ns = cl_thread_cpu_ns();
    if (first) {
        tries->record = wait;
        tries->record.flags |= CL_WAIT_SERIES;
        tries->cpu_ns = tries->last_cpu_ns;
    }
    cl_add(&thread->self_ns, cl_now() - now);
}

#endif
