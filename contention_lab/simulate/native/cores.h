/* The scheduler: cores, one queue of ready threads, slices, switches and wake-ups.
 *
 * Mirrors `reference/cores.py`, which says what is taken from Linux. It knows of locks only that a
 * spinner occupies its core, and that it stops spinning when it leaves. */
#ifndef CLS_CORES_H
#define CLS_CORES_H

#include "state.h"

/* Lets a running thread spend `ns` of CPU time on a phase. */
static inline void
begin(state *s, sim_thread *thread, int phase, double ns)
{
    thread->phase = phase;
    thread->remaining = ns;
    if (thread->began < s->now) {
        thread->began = s->now; /* later than now while the core still switches */
    }
    thread->stamp++;
    if (ns < INFINITY) {
        plan(s, thread->began + ns, END, thread->index, thread->stamp);
    }
}

/* Lets one of a free lock's spinners notice that it is free, after the hand-off's time. */
static inline void
offer(state *s, sim_lock *lock)
{
    if (!lock->claimed) {
        lock->claimed = 1;
        plan(s, s->now + handoff_ns(lock), CLAIM, lock->index, 0);
    }
}

/* Plans to see at that time whether a thread still waits for the GIL. Most waits are over long before:
 * an event for each would fill the heap, so there is one for each thread, which is put off. */
static inline void
watch(state *s, sim_thread *thread, double at)
{
    thread->demand_at = at;
    if (!thread->watched) {
        thread->watched = 1;
        plan(s, at, SWITCH, thread->index, 0);
    }
}

/* The CPU time that a runnable thread has been given by now, on average. */
static inline double
average_vruntime(const state *s)
{
    return (s->virtual_sum + (double)s->running * s->now) / (double)s->runnable;
}

/* The ready thread whose promise ends first, of those that have had no more than the average, or of
 * all where those are on cores; NULL if none is ready. `before` is the one in the queue before it. */
static sim_thread *
next_ready(const state *s, sim_thread **before)
{
    double average = average_vruntime(s);
    sim_thread *best = NULL, *previous = NULL;
    *before = NULL;
    int best_owed = 0;
    for (sim_thread *thread = s->ready_first; thread != NULL; thread = thread->ready_next) {
        int owed = thread->vruntime <= average;
        if (best == NULL || owed > best_owed
            || (owed == best_owed && thread->deadline < best->deadline)) {
            best = thread;
            best_owed = owed;
            *before = previous;
        }
        previous = thread;
    }
    return best;
}

static sim_thread *
ready_pop(state *s)
{
    sim_thread *before, *thread = next_ready(s, &before);
    ready_remove(s, before, thread);
    return thread;
}

/* Promises the next slice to a running thread that has used up its own, to the nanosecond. */
static inline void
renew(state *s, sim_thread *thread)
{
    settle(s, thread);
    double over = thread->vruntime - thread->deadline, slice_ns = s->machine->slice_ns;
    if (over >= slice_ns) {
        thread->deadline += (floor(over / slice_ns) + 1.0) * slice_ns; /* nobody was there to see */
    }
    else if (over >= -1.0) {
        thread->deadline = thread->vruntime + slice_ns;
    }
}

/* Plans the end of a slice: at the first tick after it is used up. */
static void
arm(state *s, sim_core *core)
{
    if (core->armed) {
        return;
    }
    core->armed = 1;
    renew(s, core->thread);
    double at = core->thread->began + (core->thread->deadline - core->thread->vruntime);
    double tick_ns = s->machine->tick_ns;
    if (at < s->now) {
        at = s->now;
    }
    if (tick_ns > 0) {
        double offset = tick_ns * core->index / s->machine->cores;
        at = ceil((at - offset) / tick_ns) * tick_ns + offset;
    }
    plan(s, at, SLICE, core->index, core->stamp);
}

/* Plans the ends of slices: somebody waits for a core. */
static void
arm_all(state *s)
{
    for (int32_t i = 0; i < s->machine->cores; i++) {
        arm(s, &s->cores[i]);
    }
}

/* Puts a ready thread on a core. */
static void
start(state *s, sim_core *core, sim_thread *thread)
{
    core->thread = thread;
    core->since = s->now;
    core->armed = 0;
    core->stamp++;
    thread->stats->ready_ns += s->now - thread->ready_since;
    double switch_ns = core->last == thread ? 0 : s->machine->switch_ns;
    thread->stats->overhead_ns += switch_ns;
    core->last = thread;
    thread->place = RUNNING;
    thread->core = thread->last_core = core;
    thread->began = s->now + switch_ns;
    s->running++;
    s->virtual_sum -= thread->began;
    if (thread->phase == COMPUTE && thread->has_gil && s->gil != NULL && s->gil->drop) {
        thread->pending = thread->remaining;
        thread->pending_gil = 1;
        thread->phase = NEXT;
        thread->remaining = 0;
    }
    sim_lock *lock = thread->lock;
    if (thread->phase == SPIN) {
        if (lock->policy->adaptive && lock->owner != NULL && lock->owner->place != RUNNING) {
            thread->phase = PARKING;
            thread->remaining = lock->policy->park_ns;
        }
        else {
            spinners_push(lock, thread);
            if (lock->policy->order == ORDER_COMPETITIVE && is_free(lock)) {
                offer(s, lock);
            }
        }
    }
    else if (thread->phase == POLL) {
        lock->polling++;
    }
    begin(s, thread, thread->phase, thread->remaining);
    if (s->ready_count) {
        arm(s, core);
    }
}

/* Takes the thread off a core, and returns it. */
static sim_thread *
stop(state *s, sim_core *core)
{
    sim_thread *thread = core->thread;
    settle(s, thread);
    s->running--;
    s->virtual_sum += thread->began;
    thread->stamp++;
    if (thread->phase == SPIN) {
        spinners_remove(thread->lock, thread);
    }
    else if (thread->phase == POLL) {
        thread->lock->polling--;
    }
    thread->core = NULL;
    core->thread = NULL;
    for (sim_lock *lock = thread->held; lock != NULL; lock = lock->next_held) {
        while (lock->policy->adaptive && lock->spin_first != NULL) {
            /* An adaptive spinner parks, since the owner has left its core. */
            sim_thread *spinner = lock->spin_first;
            settle(s, spinner);
            spinners_remove(lock, spinner);
            begin(s, spinner, PARKING, lock->policy->park_ns);
        }
    }
    return thread;
}

/* Lets a running thread give up its core and wait, or end. */
static void
leave(state *s, sim_thread *thread, int place)
{
    sim_core *core = thread->core;
    stop(s, core);
    thread->place = place;
    thread->lag = 0;
    if (s->ready_count) {
        double owed = average_vruntime(s) - thread->vruntime, most = 2 * s->machine->slice_ns;
        thread->lag = owed > most ? most : owed < -most ? -most : owed;
    }
    s->runnable--;
    s->virtual_sum -= thread->vruntime;
    if (s->ready_count) {
        start(s, core, ready_pop(s));
    }
    else {
        s->idle++;
    }
}

/* Sends the thread of a core to the end of the queue; the successor, or who is next, runs. */
static void
preempt(state *s, sim_core *core, sim_thread *successor)
{
    sim_thread *thread = stop(s, core);
    thread->place = READY;
    thread->ready_since = s->now;
    s->out->totals->preemptions++;
    ready_push(s, thread);
    start(s, core, successor ? successor : ready_pop(s));
}

/* Says what a thread that was asleep has had, among those that went on meanwhile. */
static void
place_among(state *s, sim_thread *thread)
{
    if (s->runnable) {
        double average = average_vruntime(s);
        if (thread->lag >= 0 || thread->vruntime <= average) {
            double owed = thread->lag > 0 ? thread->lag : 0;
            thread->vruntime = average - owed * (1.0 + 1.0 / (double)s->runnable);
            thread->deadline = thread->vruntime + s->machine->slice_ns;
        }
    }
    if (thread->vruntime >= thread->deadline) {
        thread->deadline = thread->vruntime + s->machine->slice_ns;
    }
    s->runnable++;
    s->virtual_sum += thread->vruntime;
}

/* Whether a thread that has just woken up takes a core from the one that has run longest. */
static int
takes_core(state *s, sim_core *core, const sim_thread *thread)
{
    if (s->now - core->since < s->machine->preempt_after_ns) {
        return 0;
    }
    renew(s, core->thread);
    return thread->vruntime <= average_vruntime(s) && thread->deadline < core->thread->deadline;
}

/* Lets a blocked thread run: on an idle core, in place of another, or in its turn. */
static void
make_ready(state *s, sim_thread *thread)
{
    thread->place = READY;
    thread->ready_since = s->now;
    place_among(s, thread);
    if (s->idle) {
        s->idle--;
        sim_core *core = thread->last_core ? thread->last_core : s->cores;
        if (core->thread != NULL) {
            for (core = s->cores; core->thread != NULL; core++) {}
        }
        start(s, core, thread);
        return;
    }
    if (s->machine->preempt_after_ns < INFINITY) {
        sim_core *longest = s->cores;
        for (int32_t i = 1; i < s->machine->cores; i++) {
            if (s->cores[i].since < longest->since) {
                longest = &s->cores[i];
            }
        }
        if (takes_core(s, longest, thread)) {
            preempt(s, longest, thread);
            if (s->ready_count == 1) {
                arm_all(s);
            }
            return;
        }
    }
    ready_push(s, thread);
    if (s->ready_count == 1) {
        arm_all(s);
    }
}

/* Promises the next slice to a thread whose slice is over, which it gets if nobody else comes first. */
static void
slice_over(state *s, sim_core *core, uint32_t stamp)
{
    if (stamp != core->stamp) {
        return;
    }
    core->armed = 0;
    if (!s->ready_count) {
        return;
    }
    sim_thread *thread = core->thread, *before;
    renew(s, thread);
    double average = average_vruntime(s);
    const sim_thread *next = next_ready(s, &before);
    int owed = thread->vruntime <= average, next_owed = next->vruntime <= average;
    if (next_owed > owed || (next_owed == owed && next->deadline <= thread->deadline)) {
        preempt(s, core, NULL);
    }
    else {
        arm(s, core);
    }
}

/* Lets a blocked thread become ready, after the kernel's time and `extra_ns`. */
static inline void
wake(state *s, sim_thread *thread, double extra_ns)
{
    double latency = s->idle ? s->machine->wake_other_ns : s->machine->wake_same_ns;
    thread->stamp++;
    plan(s, s->now + (latency + extra_ns), WAKE, thread->index, thread->stamp);
}

#endif
