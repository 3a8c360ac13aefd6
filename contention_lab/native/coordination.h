/* Waiting for another thread to do something (notify, put, finish) rather than for it to let go.
 *
 * The wait is recorded on the lock inside the waited-for object (a Condition's, a Queue's, an Event's), or
 * on a Source where there is none (Thread.join, Future.result). Python code brackets the wait with
 * wait_begin() and wait_end(). If the lock is re-acquired in between, as Condition.wait() does, the
 * coordination ends there: what follows is contention, and recorded as that by the lock itself.
 */
#ifndef CL_COORDINATION_H
#define CL_COORDINATION_H

#include "lock_record.h"

/* When the hold of the lock that is going on began; 0 if there is none in this recording. */
static uint64_t
cl_coordination_hold(cl_lock *lock, uint32_t epoch)
{
    int held = atomic_load_explicit(&lock->hold_epoch, memory_order_relaxed) == epoch;
    return held ? atomic_load_explicit(&lock->hold_start, memory_order_relaxed) : 0;
}

/* Marks the start of a coordination wait, or of one for a permit that `holder` has; its token, 0 if
 * nothing is being recorded. */
static unsigned
cl_coordination_begin(cl_lock *lock, int kind, uint32_t flags, uint32_t holder, uint32_t holder_site,
                      uint32_t waiters)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_get(epoch);
    if (thread == NULL || thread->coordinating == CL_NESTED_WAITS) {
        return 0;
    }
    if (__builtin_expect(thread->name_tries < CL_NAME_TRIES, 0)) {
        cl_thread_look_for_name(thread);
    }
    cl_block *block = cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) {
        return 0;
    }
    struct cl_coordination *wait = &thread->coordination[thread->coordinating];
    memset(wait, 0, sizeof *wait);
    wait->lock = lock->id;
    wait->record.lock = lock->id;
    wait->record.thread = thread->id;
    wait->record.kind = (uint8_t)kind;
    wait->record.flags = (uint16_t)flags;
    wait->record.outcome = CL_OPEN;
    wait->record.holder = holder;
    wait->record.holder_site = holder_site;
    wait->record.waiters = waiters;
    /* Since its last wait on it, has this thread let go of the lock? A hold has one beginning. */
    uint64_t hold_start = cl_coordination_hold(lock, epoch);
    if (hold_start != 0 && thread->woken_lock == lock->id && thread->woken_hold == hold_start) {
        wait->record.flags |= CL_WAIT_AGAIN;
    }
    if (cl_watchable(lock)) {
        cl_watch_begin(lock);
    }
    wait->record.start_ns = cl_now();
    if (cl_session.level >= CL_LEVEL_PROFILE) {
        wait->record.stack = cl_victim_stack(thread, &wait->record);
        wait->record.holder_stack = cl_holder_stack(holder, thread->frames, cl_session.stack_depth);
    }
    cl_wait_publish(thread, &wait->record);
    thread->busy++;
    return ++thread->coordinating;
}

/* Ends the wait `token` stands for; whoever woke this thread did so by way of `woken`. */
static void
cl_coordination_end(cl_lock *lock, unsigned token, int outcome, cl_lock *woken)
{
    cl_thread *thread = cl_current;
    if (token != 0 && cl_watchable(lock)) {
        cl_watch_end(lock);
    }
    if (token == 0 || thread == NULL || thread->coordinating < token
        || thread->coordination[token - 1].lock != lock->id) {
        return; /* a recording has ended or begun meanwhile */
    }
    struct cl_coordination wait = thread->coordination[token - 1];
    thread->coordinating = token - 1;
    atomic_store_explicit(&thread->waiting, 0, memory_order_release);
    cl_slot_does(thread->slot, CL_DOES_ANYTHING);
    cl_wait_record *record = &wait.record;
    record->end_ns = wait.end_ns != 0 ? wait.end_ns : cl_now();
    record->outcome = (uint8_t)outcome;
    if (wait.end_ns == 0) {
        record->gil_ns = cl_gil_wanted_ns(thread, record->start_ns);
    }
    record->park_ns = record->end_ns - record->start_ns - record->gil_ns;
    int recording = thread->epoch == atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (record->kind == CL_COORDINATION) {
        thread->woken_lock = lock->id;
        thread->woken_hold = cl_coordination_hold(lock, thread->epoch);
        /* Whoever gave up or was interrupted was not woken. */
        int known = outcome == CL_ACQUIRED
                    && atomic_load_explicit(&woken->waker_epoch, memory_order_relaxed) == thread->epoch;
        uint64_t waker = known ? atomic_load_explicit(&woken->waker, memory_order_relaxed) : 0;
        record->holder = (uint32_t)(waker >> 32);
        record->holder_stack = (uint32_t)waker;
        record->spins = known ? atomic_load_explicit(&woken->wakes, memory_order_relaxed) : 0;
    }
    else if (recording) {
        cl_block *block = cl_block_get(thread, lock->id, lock, cl_lock_register);
        if (block != NULL) {
            cl_count_wait(block, record);
        }
    }
    if (recording && cl_session.level >= CL_LEVEL_PROFILE) {
        cl_thread_record(thread, CL_WAITS, record, sizeof *record);
    }
    if (--thread->busy == 0 && thread != cl_current) {
        cl_thread_leave(thread);
    }
}

/* The calling thread is about to wake somebody who waits on `lock`: it goes down as the waker. */
static void
cl_coordination_wake(cl_lock *lock)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_get(epoch);
    if (thread != NULL && __builtin_expect(thread->name_tries < CL_NAME_TRIES, 0)) {
        cl_thread_look_for_name(thread);
    }
    if (thread != NULL && cl_session.level >= CL_LEVEL_PROFILE) {
        uint32_t stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
        atomic_store_explicit(&lock->waker, (uint64_t)thread->id << 32 | stack, memory_order_relaxed);
        atomic_store_explicit(&lock->waker_epoch, epoch, memory_order_relaxed);
        atomic_fetch_add_explicit(&lock->wakes, 1, memory_order_relaxed);
    }
}

#endif
