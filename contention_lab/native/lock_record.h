/* Acquire and release, recorded and not. The uncontended paths are inline and do one atomic operation
 * each; everything else is out of line.
 *
 * Order of work: the victim's stack is taken before it blocks, the culprit's after it released, and
 * only if somebody waited. Nothing is written to a ring while holding.
 */
#ifndef CL_LOCK_RECORD_H
#define CL_LOCK_RECORD_H

#include "absence.h"
#include "failed_tries.h"
#include "held.h"
#include "lock_kind.h"
#include "watch.h"

#define CL_LONG_HOLD_NS 100000u /* from here on, two system calls (0.8 us) at both ends are worth it */

/* How much an attempt may take: nothing, a wait that signal handlers can end, or a wait that they cannot. */
enum { CL_TRY, CL_INTERRUPTIBLE, CL_UNINTERRUPTED };

/* Blocks without recording. 1 acquired, 0 timed out, -1 an exception (a signal handler's). */
static int
cl_lock_block(cl_lock *lock, int blocking, uint64_t deadline)
{
    cl_wait_parts parts = {.alert = blocking == CL_INTERRUPTIBLE && cl_is_main_thread()};
    for (;;) {
        PyThreadState *tstate = PyEval_SaveThread();
        int result = cl_lock_wait(lock, deadline, 0, &parts);
        PyEval_RestoreThread(tstate);
        if (result == CL_WAIT_FREE) {
            if (cl_lock_try(lock)) {
                return 1;
            }
            continue;
        }
        if (result != CL_WAIT_SIGNAL) {
            return result == CL_WAIT_ACQUIRED;
        }
        if (blocking == CL_INTERRUPTIBLE && Py_MakePendingCalls() < 0) {
            return -1;
        }
    }
}

static inline void
cl_hold_begin(cl_lock *lock, uint32_t epoch, uint32_t thread, uint32_t site, uint64_t start,
              uint64_t cpu, uint32_t preemptions)
{
    atomic_store_explicit(&lock->owner, (uint64_t)thread << 32 | site, memory_order_relaxed);
    atomic_store_explicit(&lock->hold_start, start, memory_order_relaxed);
    atomic_store_explicit(&lock->hold_cpu, cpu, memory_order_relaxed);
    atomic_store_explicit(&lock->hold_preemptions, preemptions, memory_order_relaxed);
    atomic_store_explicit(&lock->hold_epoch, epoch, memory_order_relaxed);
}

static void
cl_count_wait(cl_block *block, const cl_wait_record *wait)
{
    static const uint32_t outcome_counter[] = {
        [CL_ACQUIRED] = CL_C_ACQUIRES, [CL_TIMED_OUT] = CL_C_TIMED_OUT,
        [CL_FAILED_TRY] = CL_C_FAILED_TRIES, [CL_INTERRUPTED] = CL_C_INTERRUPTED,
        [CL_CANCELLED] = CL_C_INTERRUPTED};
    uint64_t length = wait->end_ns - wait->start_ns;
    cl_add(&block->value[outcome_counter[wait->outcome]], 1);
    cl_add(&block->value[CL_C_CONTENDED], 1);
    cl_add(&block->value[CL_C_WAIT_NS], length);
    cl_add(&block->value[CL_C_SPIN_NS], wait->spin_ns);
    cl_add(&block->value[CL_C_PARK_NS], wait->park_ns);
    cl_add(&block->value[CL_C_GIL_NS], wait->gil_ns);
    cl_add(&block->value[CL_C_SPIN_CPU_NS], wait->spin_cpu_ns);
    cl_max(&block->value[CL_C_MAX_WAIT_NS], length);
}

/* Shows the wait in progress to the writer (for traces of programs that hang). */
static void
cl_wait_publish(cl_thread *thread, const cl_wait_record *wait)
{
    thread->wait = *wait;
    cl_slot_does(thread->slot, wait->kind == CL_CONTENTION ? CL_AWAITS_LOCK : CL_AWAITS_OTHERS);
    /* release: whoever sees the flag sees the record behind it */
    atomic_store_explicit(&thread->waiting, 1, memory_order_release);
}

/* Blocks and records the wait. As cl_lock_block().
 *
 * A signal handler may run Python code in the middle of it, with waits and even a new recording of its
 * own: `busy` keeps this thread's state from being freed under us. */
static int
cl_lock_block_recorded(cl_lock *lock, cl_thread *thread, cl_block *block, uint32_t site,
                       int blocking, uint64_t deadline)
{
    int detailed = cl_session.level >= CL_LEVEL_PROFILE;
    cl_wait_record wait = {.start_ns = cl_now(), .lock = lock->id, .thread = thread->id,
                           .outcome = CL_OPEN,
                           .flags = deadline == CL_FOREVER ? 0 : CL_WAIT_TIMEOUT_GIVEN};
    cl_wait_note_holder(lock, thread->epoch, &wait);
    wait.waiters = atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
    if (detailed) {
        wait.stack = cl_victim_stack(thread, &wait);
        wait.holder_stack = cl_holder_stack(wait.holder, thread->frames, cl_session.stack_depth);
        cl_add(&thread->self_ns, cl_now() - wait.start_ns);
    }
    thread->busy++;
    cl_wait_publish(thread, &wait);
    cl_wait_parts parts = {.alert = blocking == CL_INTERRUPTIBLE && cl_is_main_thread()};
    int result, failed = 0;
    for (;;) {
        PyThreadState *tstate = PyEval_SaveThread();
        result = cl_lock_wait(lock, deadline, 1, &parts);
        uint64_t stopped_at = result == CL_WAIT_ACQUIRED ? parts.acquired_at : cl_now();
        if (result == CL_WAIT_ACQUIRED && detailed) {
            cl_hold_begin(lock, thread->epoch, thread->id, site, stopped_at, parts.cpu_at_end,
                          parts.preemptions_at_end);
            cl_held_push(thread, lock, site, stopped_at);
        }
        if (result == CL_WAIT_ACQUIRED) {
            atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
        }
        else if (result == CL_WAIT_TIMED_OUT) {
            cl_wait_given_up(lock);
        }
        PyEval_RestoreThread(tstate);
        wait.end_ns = cl_now();
        if (result == CL_WAIT_ACQUIRED || result == CL_WAIT_TIMED_OUT) {
            wait.gil_ns = wait.end_ns - stopped_at;
            break;
        }
        wait.gil_before_ns += wait.end_ns - stopped_at;
        if (result == CL_WAIT_FREE) {
            if (!cl_lock_try(lock)) {
                continue;
            }
            result = CL_WAIT_ACQUIRED;
            wait.end_ns = cl_now_after();
            if (detailed) {
                cl_hold_begin(lock, thread->epoch, thread->id, site, wait.end_ns, parts.cpu_at_end,
                              parts.preemptions_at_end);
                cl_held_push(thread, lock, site, wait.end_ns);
            }
            atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
            break;
        }
        if (blocking == CL_INTERRUPTIBLE && Py_MakePendingCalls() < 0) {
            cl_wait_given_up(lock);
            wait.end_ns = cl_now();
            failed = 1;
            break;
        }
        cl_wait_publish(thread, &wait);
    }
    atomic_store_explicit(&thread->waiting, 0, memory_order_release);
    cl_slot_does(thread->slot, CL_DOES_ANYTHING);
    if (result == CL_WAIT_ACQUIRED && detailed && thread->long_hold[site % CL_LONG_SITES]
        && atomic_load_explicit(&lock->hold_cpu, memory_order_relaxed) == 0) {
        atomic_store_explicit(&lock->hold_cpu, cl_thread_cpu_ns(), memory_order_relaxed);
        atomic_store_explicit(&lock->hold_preemptions, cl_thread_preemptions(), memory_order_relaxed);
    }
    wait.spin_ns = parts.spin_ns;
    wait.park_ns = parts.park_ns;
    wait.spin_cpu_ns = parts.spin_cpu_ns;
    wait.spins = parts.spins > UINT32_MAX ? UINT32_MAX : (uint32_t)parts.spins;
    wait.outcome = failed ? CL_INTERRUPTED
                          : result == CL_WAIT_ACQUIRED ? CL_ACQUIRED : CL_TIMED_OUT;
    cl_add(&block->value[CL_C_SPINS], parts.spins);
    cl_count_wait(block, &wait);
    if (detailed) {
        cl_thread_record(thread, CL_WAITS, &wait, sizeof wait);
        cl_add(&thread->self_ns, cl_now() - wait.end_ns);
    }
    if (--thread->busy == 0 && thread != cl_current) {
        cl_thread_leave(thread); /* a newer recording has replaced it meanwhile */
    }
    return failed ? -1 : wait.outcome == CL_ACQUIRED;
}

/* How long the thread's last take of the GIL lasted, if it began after `start`; 0 without the layer. */
static uint64_t
cl_gil_wanted_ns(const cl_thread *thread, uint64_t start)
{
    return thread->gil_wanted_at > start ? thread->gil_took_at - thread->gil_wanted_at : 0;
}

/* A Condition has been notified and takes its lock again: the coordination ends here. */
static void
cl_coordination_stop(cl_thread *thread, uint32_t lock)
{
    struct cl_coordination *wait = &thread->coordination[thread->coordinating - 1];
    if (wait->lock == lock && wait->end_ns == 0) {
        wait->end_ns = cl_now();
        wait->record.gil_ns = cl_gil_wanted_ns(thread, wait->record.start_ns);
    }
}

/* Whether this thread is in a recorded wait for the thing that the lock is an inner part of: then taking
 * the lock is a part of that wait, and no event of its own. */
static int
cl_is_inner(const cl_thread *thread, const cl_lock *lock)
{
    const struct cl_coordination *wait = &thread->coordination[thread->coordinating - 1];
    return lock->whole != NULL && wait->lock == lock->whole->id && wait->end_ns == 0;
}

/* 1 acquired, 0 not, -1 an exception (only if CL_INTERRUPTIBLE). */
static int
cl_lock_acquire(cl_lock *lock, int blocking, uint64_t deadline)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0) {
        return cl_lock_try(lock) ? 1 : blocking ? cl_lock_block(lock, blocking, deadline) : 0;
    }
    cl_thread *thread = cl_thread_get(epoch);
    cl_block *block = thread == NULL ? NULL
                                     : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) { /* no memory to record with: the program goes on */
        return cl_lock_try(lock) ? 1 : blocking ? cl_lock_block(lock, blocking, deadline) : 0;
    }
    int detailed = cl_session.level >= CL_LEVEL_PROFILE;
    if (__builtin_expect(thread->coordinating != 0, 0)) {
        cl_coordination_stop(thread, lock->id);
        if (cl_is_inner(thread, lock)) {
            return cl_lock_try(lock) ? 1 : blocking ? cl_lock_block(lock, blocking, deadline) : 0;
        }
    }
    uint32_t site = detailed ? cl_site_capture(thread->frames) : 0;
    /* Where holds are long, the holder's CPU time is taken, before it holds. */
    uint64_t cpu = 0;
    uint32_t preemptions = 0;
    if (detailed && __builtin_expect(thread->long_hold[site % CL_LONG_SITES], 0)) {
        cpu = cl_thread_cpu_ns();
        preemptions = cl_thread_preemptions();
    }
    if (__builtin_expect(cl_held_count(thread) != 0, 0) && blocking) {
        cl_order_note(thread, lock, site, deadline != CL_FOREVER);
    }
    if (cl_lock_try(lock)) {
        if (detailed) {
            /* With a GIL, the last holder released under it: no fence is needed to be after him. */
            uint64_t now = CL_FREE_THREADED ? cl_now_after() : cl_now();
            cl_hold_begin(lock, epoch, thread->id, site, now, cpu, preemptions);
            cl_held_push(thread, lock, site, now);
        }
        cl_add(&block->value[CL_C_ACQUIRES], 1);
        if (__builtin_expect(thread->tries.count != 0, 0)) {
            cl_tries_end(thread, cl_now());
        }
        return 1;
    }
    if (!blocking) {
        cl_record_failed_try(lock, thread, block);
        return 0;
    }
    if (__builtin_expect(thread->tries.count != 0, 0)) {
        cl_tries_end(thread, cl_now());
    }
    return cl_lock_block_recorded(lock, thread, block, site, blocking, deadline);
}

/* A thread has asked whether the lock is held. If another one holds it, that is a try that failed; if none
 * does, whoever asked for that waits no longer. */
static void
cl_lock_looked_at(cl_lock *lock, int is_held)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_thread *thread = epoch == 0 ? NULL : cl_thread_get(epoch);
    if (thread == NULL || thread->coordinating != 0) {
        return;
    }
    if (!is_held) {
        if (thread->tries.count != 0 && thread->tries.record.lock == lock->id) {
            cl_tries_end(thread, cl_now());
        }
        return;
    }
    uint64_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
    if (atomic_load_explicit(&lock->hold_epoch, memory_order_relaxed) == epoch && owner >> 32 == thread->id) {
        return; /* its own: an assertion */
    }
    cl_block *block = cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block != NULL) {
        cl_record_failed_try(lock, thread, block);
    }
}

static inline void
cl_count_hold(cl_block *block, uint64_t length_ns)
{
    cl_add(&block->value[CL_C_HOLD_NS], length_ns);
    cl_max(&block->value[CL_C_MAX_HOLD_NS], length_ns);
    unsigned bucket = length_ns < 2 ? 0 : 63u - (unsigned)__builtin_clzll(length_ns);
    cl_add(&block->value[CL_C_HISTOGRAM + (bucket < CL_BUCKETS ? bucket : CL_BUCKETS - 1)], 1);
}

static void
cl_record_hold(cl_thread *thread, cl_block *block, cl_hold_record *hold, int blocked)
{
    uint64_t length = hold->end_ns - hold->start_ns;
    cl_count_hold(block, length);
    uint32_t wants_stack = hold->flags & CL_HOLD_WANTS_STACK;
    hold->flags &= ~CL_HOLD_WANTS_STACK;
    if (__builtin_expect(!blocked, 1)) {
        if (cl_session.level < CL_LEVEL_TRACE) {
            int sampled = cl_is_sampled(block);
            if (__builtin_expect(sampled || hold->flags & CL_HOLD_WATCHED, 0)
                && cl_session.level == CL_LEVEL_PROFILE) {
                hold->flags |= CL_HOLD_UNCONTENDED;
                wants_stack |= sampled;
                hold->stack = wants_stack ? cl_stack_capture(thread->frames, cl_session.stack_depth) : 0;
                cl_thread_record(thread, CL_HOLDS, hold, sizeof *hold);
            }
            return;
        }
        if (length <= UINT32_MAX && !(hold->flags & CL_HOLD_HANDED_OFF)) {
            cl_short_hold_record brief = {hold->start_ns, (uint32_t)length, hold->lock, hold->site};
            cl_thread_record(thread, CL_SHORT_HOLDS, &brief, sizeof brief);
            return;
        }
        hold->flags |= CL_HOLD_UNCONTENDED;
        cl_thread_record(thread, CL_HOLDS, hold, sizeof *hold);
        return;
    }
    uint64_t before = cl_now();
    thread->long_hold[hold->site % CL_LONG_SITES] = length >= CL_LONG_HOLD_NS;
    cl_add(&block->value[CL_C_BLOCKING_HOLDS], 1);
    hold->stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
    if (hold->stack == 0) {
        cl_add(&thread->dropped_stacks, 1);
    }
    cl_thread_record(thread, CL_HOLDS, hold, sizeof *hold);
    cl_add(&thread->self_ns, cl_now() - before);
}

/* 0, or -1 if the lock was not held (no exception set). */
static int
cl_lock_release(cl_lock *lock)
{
    if (!cl_lock_is_held(lock)) {
        return -1;
    }
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0
        || atomic_load_explicit(&lock->hold_epoch, memory_order_relaxed) != epoch) {
        return cl_lock_unlock(lock) == CL_FREE ? -1 : 0;
    }
    uint64_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
    uint64_t cpu = atomic_load_explicit(&lock->hold_cpu, memory_order_relaxed);
    uint32_t preemptions = atomic_load_explicit(&lock->hold_preemptions, memory_order_relaxed);
    cl_hold_record hold = {
        .start_ns = atomic_load_explicit(&lock->hold_start, memory_order_relaxed),
        .lock = lock->id, .thread = (uint32_t)(owner >> 32), .site = (uint32_t)owner};
    hold.waiters = atomic_load_explicit(&lock->waiters, memory_order_acquire);
    int gave_up = atomic_load_explicit(&lock->gave_up, memory_order_relaxed) != 0;
    if (__builtin_expect(gave_up, 0)) {
        atomic_store_explicit(&lock->gave_up, 0, memory_order_relaxed);
    }
    hold.flags = cl_watched(lock);
    atomic_store_explicit(&lock->hold_epoch, 0, memory_order_relaxed);
    hold.end_ns = cl_now();
    uint32_t old = cl_lock_unlock(lock);
    /* From here on the lock may be somebody else's. */
    if (old == CL_FREE) {
        return -1;
    }
    if (cpu != 0) {
        hold.cpu_ns = cl_thread_cpu_ns() - cpu;
        hold.preemptions = cl_thread_preemptions() - preemptions;
    }
    cl_thread *thread = cl_thread_get(epoch);
    cl_block *block = thread == NULL ? NULL
                                     : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) {
        return 0;
    }
    hold.release_thread = thread->id;
    if (__builtin_expect(hold.thread == thread->id, 1)) {
        cl_held_pop(thread, lock->id);
    }
    else {
        cl_held_hand_off(thread, lock);
        hold.flags |= CL_HOLD_HANDED_OFF;
        hold.cpu_ns = 0;
        hold.preemptions = 0;
    }
    if (__builtin_expect(cpu != 0, 0)) {
        thread->long_hold[hold.site % CL_LONG_SITES] =
            hold.end_ns >= hold.start_ns + CL_LONG_HOLD_NS;
    }
    if (hold.end_ns < hold.start_ns) { /* two cores' clocks a few ns apart */
        hold.end_ns = hold.start_ns;
    }
    if (__builtin_expect((thread->absence.calls | thread->absence.natives) != 0, 0)) {
        cl_absence_overdue(thread);
    }
    cl_record_hold(thread, block, &hold, hold.waiters != 0 || gave_up);
    if (__builtin_expect(thread->name_tries < CL_NAME_TRIES, 0)) {
        cl_thread_look_for_name(thread);
    }
    return 0;
}

#endif
