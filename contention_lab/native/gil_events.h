/* The GIL as the layer sees it: every wait, and who has it from when to when, to the nanosecond.
 *
 * The functions are called in the midst of the interpreter's own take and drop, with the GIL's mutex held
 * (it guards what is here, too), except for cl_gil_settled(): there the calling thread has just taken the GIL and
 * has let go of the mutex. Its thread state is not the current one yet, so nothing may be asked of Python:
 * frames and code objects are read in place.
 *
 * Waits are recorded one by one. Of holds only those that made somebody wait are, in runs (gil_runs.h); the rest
 * is in the totals.
 */
#ifndef CL_GIL_EVENTS_H
#define CL_GIL_EVENTS_H

#include "absence.h"

#define CL_AT_ONCE_NS 50000u /* CPU time from giving the GIL up to asking for it again, if that is all one does */

/* What one thread knows of its present attempt. */
typedef struct {
    uint64_t wait_start; /* 0: does not wait */
    uint64_t arrived;  /* it found the mutex taken: 0 not */
    uint64_t taken_at;
    uint64_t passing, passed; /* it waited for somebody else to take what it had given up */
    uint64_t forced_at, forced_cpu; /* it was asked to give it up and did: when, and at what CPU time */
    uint64_t switches; /* when its present sleep began */
    uint32_t epoch, holder, waiters;
    uint8_t asked;     /* it has asked the holder to give it up */
    uint8_t settling;  /* it has taken it just now */
    uint8_t is_recorders; /* it is a thread of the recorder's own */
} cl_gil_attempt;

static CL_TLS cl_gil_attempt cl_gil_mine;

static struct {
    _Atomic int is_seen; /* the layer shows it to us in this recording (the probe may be the first to look) */
    _Atomic uint32_t holder; /* thread, 0 unknown */
    _Atomic uint64_t since;  /* 0: nobody has it, or since before the recording */
    const cl_gil_attempt *owner; /* who has it, or had it last */
    uint64_t switches;       /* from one thread to another */
    uint32_t waiters;
    uint32_t asked;          /* a waiter has asked the present holder to give it up */
} cl_gil;

static void
cl_gil_arrived(void)
{
    if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0) {
        cl_gil_mine.arrived = cl_now();
    }
}

/* Who gives the GIL up when others have asked for it has to see that one of them takes it. */
static void
cl_gil_passed_on(int over)
{
    cl_gil_attempt *mine = &cl_gil_mine;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    mine->epoch = epoch;
    *(over ? &mine->passed : &mine->passing) = epoch == 0 ? 0 : cl_now();
}

/* When this thread's attempt began, of which we hear now. Who was made to give the GIL up, and has done
 * nothing since, has been wanting it all the time. */
static uint64_t
cl_gil_attempt_start(cl_gil_attempt *mine)
{
    uint64_t now = cl_now();
    uint64_t start = mine->arrived != 0 && mine->arrived < now ? mine->arrived : now;
    if (mine->forced_at != 0 && !cl_gil_called && cl_thread_cpu_ns() < mine->forced_cpu + CL_AT_ONCE_NS) {
        start = mine->forced_at;
        mine->passing = 0;
    }
    mine->arrived = mine->forced_at = 0;
    return start | 1u;
}

static void
cl_gil_wait(void)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0) {
        return;
    }
    cl_gil_attempt *mine = &cl_gil_mine;
    if (mine->epoch != epoch) {
        mine->wait_start = mine->passing = 0;
    }
    if (mine->wait_start == 0) {
        mine->wait_start = cl_gil_attempt_start(mine);
        mine->epoch = epoch;
        mine->holder = atomic_load_explicit(&cl_gil.holder, memory_order_relaxed);
        mine->waiters = cl_gil.waiters++;
        mine->asked = 0;
        cl_thread *thread = cl_thread_here(epoch);
        if (thread != NULL) {
            atomic_store_explicit(&thread->gil_waiting_for, mine->holder, memory_order_relaxed);
            atomic_store_explicit(&thread->gil_waiting, mine->wait_start, memory_order_release);
        }
    }
    mine->switches = cl_gil.switches;
}

/* As the interpreter does: a sleep of a whole switch interval without a switch, and the holder is asked. */
static void
cl_gil_woke(int timed_out)
{
    if (timed_out && cl_gil_mine.switches == cl_gil.switches
        && atomic_load_explicit(&cl_gil.since, memory_order_relaxed) != 0) {
        cl_gil.asked = 1;
        cl_gil_mine.asked = 1;
    }
}

static void
cl_gil_taken(void)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    cl_gil_attempt *mine = &cl_gil_mine;
    if (epoch == 0) {
        mine->wait_start = mine->passing = 0;
        return;
    }
    uint64_t now = cl_now() | 1u;
    cl_thread *thread = cl_thread_here(epoch);
    if (mine->epoch != epoch) {
        mine->wait_start = mine->passing = 0;
    }
    if (mine->wait_start != 0) {
        cl_gil.waiters -= cl_gil.waiters > 0;
    }
    cl_gil.switches += cl_gil.owner != mine;
    cl_gil.owner = mine;
    cl_gil.asked = 0;
    atomic_store_explicit(&cl_gil.holder, thread == NULL ? 0 : thread->id, memory_order_relaxed);
    atomic_store_explicit(&cl_gil.since, now, memory_order_relaxed);
    if (mine->wait_start == 0 && mine->forced_at != 0) {
        uint64_t start = cl_gil_attempt_start(mine);
        mine->wait_start = start < now ? start : 0; /* it is free again already */
        mine->waiters = mine->holder = mine->asked = 0;
    }
    mine->taken_at = now;
    mine->arrived = mine->forced_at = 0;
    mine->settling = 1;
}

static void
cl_gil_record_wait(cl_thread *thread, uint64_t start, uint64_t end, uint32_t stack, uint32_t flags)
{
    cl_gil_attempt *mine = &cl_gil_mine;
    cl_gil_wait_record wait = {
        .start_ns = start, .end_ns = end < start ? start : end, .thread = thread->id, .stack = stack,
        .holder = mine->holder, .waiters = mine->waiters, .lock = cl_held_innermost(thread),
        .flags = flags | (mine->asked ? CL_GIL_ASKED : 0u)};
    cl_thread_record(thread, CL_GIL_WAITS, &wait, sizeof wait);
}

/* Its length; `start` is 0 for none. */
static uint64_t
cl_gil_count_wait(cl_thread *thread, uint64_t start, uint64_t end)
{
    uint64_t length = start != 0 && end > start ? end - start : 0;
    cl_add(&thread->gil_total[CL_G_WAITS], start != 0);
    cl_add(&thread->gil_total[CL_G_WAIT_NS], length);
    return length;
}

static __attribute__((noinline)) void
cl_gil_settle(uint32_t epoch)
{
    cl_gil_attempt *mine = &cl_gil_mine;
    cl_thread *thread = cl_thread_here(epoch);
    thread = thread != NULL ? thread
                            : cl_thread_make_bare(epoch, mine->wait_start != 0 ? mine->wait_start : mine->taken_at);
    if (thread == NULL) {
        mine->wait_start = mine->passing = 0;
        return;
    }
    atomic_store_explicit(&cl_gil.holder, thread->id, memory_order_relaxed);
    thread->absence.has_gil = 1;
    uint64_t waited = 0;
    thread->gil_took_at = thread->gil_wanted_at = mine->taken_at;
    if ((mine->wait_start | mine->passing) != 0) {
        waited = cl_gil_count_wait(thread, mine->wait_start, mine->taken_at)
                 + cl_gil_count_wait(thread, mine->passing, mine->passed);
        atomic_store_explicit(&thread->gil_waiting, 0, memory_order_relaxed);
        thread->gil_wanted_at = mine->wait_start != 0 ? mine->wait_start : mine->taken_at;
    }
    struct cl_absence *absence = &thread->absence;
    if (cl_session.level >= CL_LEVEL_PROFILE
        && (mine->wait_start != 0 || mine->passing != 0 || absence->calls != 0 || absence->natives != 0
            || absence->unseen_ns >= CL_UNSEEN_NS)) {
        uint64_t before = cl_now();
        int locked;
        const void *self;
        uint32_t stack = 0, flags = 0;
        absence->unseen_ns += waited;
        if ((absence->calls != 0 || absence->natives != 0 || absence->unseen_ns >= CL_UNSEEN_NS)
            && cl_gil_read(&locked, &self)) {
            stack = cl_stack_capture_from(cl_cursor_begin_at((PyThreadState *)(uintptr_t)self),
                                          thread->frames, cl_session.stack_depth);
            absence->unseen_ns = 0;
            flags = stack == 0 ? CL_GIL_NO_FRAMES : 0;
        }
        if (absence->has_hold && (stack | flags) != 0) {
            cl_gil_run_end(thread, stack, flags);
        }
        cl_absence_end(thread, stack, 0);
        if (mine->passing != 0) {
            cl_gil_record_wait(thread, mine->passing, mine->passed, stack, flags | CL_GIL_PASSING);
        }
        if (mine->wait_start != 0) {
            cl_gil_record_wait(thread, mine->wait_start, mine->taken_at, stack, flags);
        }
        cl_add(&thread->self_ns, cl_now() - before);
    }
    absence->has_hold = 0;
    mine->wait_start = mine->passing = 0;
}

static void
cl_gil_settled(void)
{
    cl_gil_attempt *mine = &cl_gil_mine;
    if (!mine->settling) {
        return;
    }
    mine->settling = 0;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0 || mine->is_recorders) {
        mine->wait_start = mine->passing = 0;
        return;
    }
    int error = errno;
    cl_gil_settle(epoch);
    errno = error;
}

/* Accounts for the hold that ends now. */
static void
cl_gil_end_hold(cl_thread *thread)
{
    uint64_t since = atomic_load_explicit(&cl_gil.since, memory_order_relaxed);
    uint64_t now = cl_now();
    if (thread == NULL || since == 0) {
        return;
    }
    now = now < since ? since : now;
    thread->absence.has_gil = 0;
    cl_add(&thread->gil_total[CL_G_HOLDS], 1);
    cl_add(&thread->gil_total[CL_G_HELD_NS], now - since);
    cl_add(&thread->gil_total[CL_G_ASKED], cl_gil.asked);
    if (cl_gil.waiters > 0 && cl_session.level >= CL_LEVEL_PROFILE) {
        cl_gil_run_add(thread, since, now, cl_gil.waiters, cl_gil.asked ? CL_GIL_ASKED : 0);
        thread->absence.unseen_ns += now - since;
        thread->absence.has_hold = 1;
    }
    if (cl_gil.asked) {
        cl_gil_mine.forced_at = now;
        cl_gil_mine.forced_cpu = cl_thread_cpu_ns();
        cl_gil_called = atomic_load_explicit(&thread->waiting, memory_order_relaxed) != 0;
    }
}

static void
cl_gil_dropped(void)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (epoch == 0) {
        return;
    }
    cl_gil_mine.arrived = 0; /* it was to give it up */
    if (cl_gil.owner == &cl_gil_mine) {
        cl_gil_end_hold(cl_thread_here(epoch));
    }
    atomic_store_explicit(&cl_gil.since, 0, memory_order_relaxed);
    atomic_store_explicit(&cl_gil.holder, 0, memory_order_relaxed);
}

/* A recording begins in this thread, which has the GIL and a thread state. */
static void
cl_gil_begin(uint32_t epoch)
{
    if (!cl_gil.is_seen) {
        return;
    }
    cl_thread *thread = cl_thread_get(epoch);
    cl_gil.owner = &cl_gil_mine;
    atomic_store_explicit(&cl_gil.holder, thread == NULL ? 0 : thread->id, memory_order_relaxed);
    atomic_store_explicit(&cl_gil.since, cl_now() | 1u, memory_order_relaxed);
    if (thread != NULL) {
        thread->absence.has_gil = 1;
    }
}

/* It is about to end, in this thread. */
static void
cl_gil_end(uint32_t epoch)
{
    cl_thread *thread = cl_thread_here(epoch);
    if (thread != NULL && cl_gil.owner == &cl_gil_mine) {
        cl_gil_end_hold(thread);
        if (thread->absence.has_hold || thread->absence.calls != 0) {
            uint32_t stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
            if (thread->absence.has_hold) {
                cl_gil_run_end(thread, stack, 0);
            }
            cl_absence_end(thread, stack, 0);
        }
    }
    atomic_store_explicit(&cl_gil.since, 0, memory_order_relaxed);
}

/* In a forked child, which records nothing yet. */
static void
cl_gil_forget(void)
{
    memset(&cl_gil, 0, sizeof cl_gil);
    memset(&cl_gil_mine, 0, sizeof cl_gil_mine);
}

#endif
