/* Locks: acquiring, waiting, handing over.
 *
 * Mirrors `reference/locks.py`. A policy is a set of numbers (lock_row); what they mean is here. Nothing
 * here advances a program: a thread that got its lock has a phase to end, after which threads.h takes
 * it on. */
#ifndef CLS_LOCKS_H
#define CLS_LOCKS_H

#include "cores.h"

#define WAITS (-1.0)

static double release(state *s, sim_thread *thread, sim_lock *lock, int reading);

/* Whether a newcomer may have the lock at once. One that others are about to take, it has to compete
 * for: its atomic operation queues up for the cache line like theirs. */
static inline int
can_take(const sim_lock *lock, int reading)
{
    return reading ? lock->owner == NULL && lock->writers_waiting == 0
                   : is_free(lock) && !lock->claimed;
}

/* Makes a thread the owner, and returns what taking a free lock costs it. */
static inline double
take(state *s, sim_lock *lock, sim_thread *thread, int reading)
{
    lock->stats->acquires++;
    if (thread->lock == lock) {
        double waited = s->now - thread->waiting_since;
        lock->stats->wait_ns += waited;
        if (waited > lock->stats->longest_wait_ns) {
            lock->stats->longest_wait_ns = waited;
        }
        *(lock == s->gil ? &thread->stats->gil_ns : &thread->stats->wait_ns) += waited;
        thread->lock = NULL;
    }
    int was_free = is_free(lock);
    if (reading || lock->policy->permits > 1) {
        lock->readers++;
    }
    else {
        lock->owner = thread;
        lock->next_held = thread->held;
        thread->held = lock;
    }
    if (was_free && !is_free(lock)) {
        lock->busy_since = s->now;
    }
    if (lock == s->gil) {
        thread->has_gil = 1;
        lock->drop = 0;
        lock->barred = NULL;
    }
    double cost = lock->policy->acquire_ns;
    if (lock->last != thread) {
        cost += lock->policy->transfer_ns;
        lock->last = thread;
        lock->switches++;
    }
    return cost;
}

/* Makes a lock free of one owner. */
static inline void
drop_ownership(state *s, sim_thread *thread, sim_lock *lock, int reading)
{
    int was_free = is_free(lock);
    if (reading || lock->policy->permits > 1) {
        lock->readers--;
    }
    else {
        lock->owner = NULL;
        sim_lock **link = &thread->held;
        while (*link != NULL && *link != lock) {
            link = &(*link)->next_held;
        }
        if (*link != NULL) {
            *link = lock->next_held;
        }
    }
    if (lock == s->gil) {
        thread->has_gil = 0;
    }
    if (!was_free && is_free(lock)) {
        book_busy(s, lock);
    }
}

static inline void
spin(state *s, sim_thread *thread, sim_lock *lock)
{
    spinners_push(lock, thread);
    begin(s, thread, SPIN, lock->policy->spin_ns);
    if (lock->policy->order == ORDER_COMPETITIVE && is_free(lock)) {
        offer(s, lock);
    }
}

/* Looks away for a random time around the present back-off. */
static inline void
back_off(state *s, sim_thread *thread, sim_lock *lock, double extra_ns)
{
    lock->polling++;
    double delay = thread->backoff * (0.5 + random_next(&thread->random));
    begin(s, thread, POLL, delay + extra_ns);
}

/* Spins, backs off or parks, as the lock's policy says. */
static void
wait_more(state *s, sim_thread *thread, sim_lock *lock, double extra_ns)
{
    const lock_row *policy = lock->policy;
    if (policy->backoff_max_ns > 0) {
        thread->backoff = policy->backoff_min_ns;
        back_off(s, thread, lock, extra_ns);
    }
    else if (policy->spin_ns > 0
             && !(policy->adaptive && lock->owner != NULL && lock->owner->place != RUNNING)) {
        spin(s, thread, lock);
    }
    else {
        begin(s, thread, PARKING, policy->park_ns + extra_ns);
    }
}

/* Begins to wait, without the GIL. */
static void
begin_wait(state *s, sim_thread *thread, sim_lock *lock, int reading, double extra_ns)
{
    lock->stats->contended++;
    thread->lock = lock;
    thread->reading = reading;
    thread->waiting_since = s->now;
    if (lock != s->gil && thread->has_gil) {
        extra_ns += release(s, thread, s->gil, 0);
    }
    if (lock->policy->order != ORDER_COMPETITIVE) {
        waiters_push(lock, thread);
        if (lock->policy->order == ORDER_PHASE_FAIR && !reading) {
            lock->writers_waiting++;
        }
    }
    wait_more(s, thread, lock, extra_ns);
}

/* Acquires a lock for a running thread: the CPU time that costs, or WAITS. */
static inline double
acquire(state *s, sim_thread *thread, sim_lock *lock, int reading)
{
    if (can_take(lock, reading)) {
        return take(s, lock, thread, reading);
    }
    begin_wait(s, thread, lock, reading, 0);
    return WAITS;
}

/* Hands the lock to a waiter, wherever it is; returns what waking it costs the giver. */
static double
grant(state *s, sim_lock *lock, sim_thread *thread)
{
    double cost = handoff_ns(lock);
    take(s, lock, thread, thread->reading);
    if (thread->parked) {
        thread->parked = 0;
        thread->phase = TAKE;
        thread->remaining = cost;
        lock->stats->wakes++;
        wake(s, thread, lock->policy->wake_extra_ns);
        return lock->policy->wake_call_ns;
    }
    if (thread->place == RUNNING) {
        settle(s, thread);
        if (thread->phase == SPIN) {
            spinners_remove(lock, thread);
        }
        begin(s, thread, TAKE, cost);
    }
    else {
        thread->phase = TAKE;
        thread->remaining = cost;
    }
    return 0;
}

/* Lets the next phase in: all waiting readers after a writer, else the first writer. */
static double
admit(state *s, sim_lock *lock, int after_writer)
{
    sim_thread *writer = NULL;
    int readers = 0;
    for (sim_thread *waiter = lock->wait_first; waiter != NULL; waiter = waiter->wait_next) {
        if (waiter->reading) {
            readers = 1;
        }
        else if (writer == NULL) {
            writer = waiter;
        }
    }
    if (writer != NULL && !(after_writer && readers)) {
        waiters_remove(lock, writer);
        lock->writers_waiting--;
        return grant(s, lock, writer);
    }
    double cost = 0;
    sim_thread *next;
    for (sim_thread *waiter = lock->wait_first; waiter != NULL; waiter = next) {
        next = waiter->wait_next;
        if (waiter->reading) {
            waiters_remove(lock, waiter);
            cost += grant(s, lock, waiter);
        }
    }
    return cost;
}

/* Releases a lock and sees to its waiters; returns the CPU time it costs. */
static double
release(state *s, sim_thread *thread, sim_lock *lock, int reading)
{
    const lock_row *policy = lock->policy;
    drop_ownership(s, thread, lock, reading);
    if (policy->order == ORDER_COMPETITIVE) {
        if (lock->spin_first != NULL) {
            offer(s, lock);
        }
        if (lock->wait_first != NULL && lock->waking < policy->wakes_at_once) {
            lock->waking++;
            sim_thread *woken = waiters_pop(lock);
            woken->parked = woken->timed_out = 0;
            woken->phase = RETRY;
            woken->remaining = 0;
            lock->stats->wakes++;
            wake(s, woken, policy->wake_extra_ns);
            return policy->release_ns + policy->wake_call_ns;
        }
        return policy->release_ns;
    }
    if (!is_free(lock) || lock->wait_first == NULL) {
        return policy->release_ns;
    }
    if (policy->order == ORDER_FIFO) {
        return policy->release_ns + grant(s, lock, waiters_pop(lock));
    }
    return policy->release_ns + admit(s, lock, !reading);
}

/* Whether a waiter has to take the GIL first; if so, it does its last step again. */
static inline int
gil_comes_first(state *s, sim_thread *thread, sim_lock *lock)
{
    if (!lock->policy->gil_first || s->gil == NULL || thread->has_gil) {
        return 0;
    }
    double waited = s->now - thread->waiting_since;
    lock->stats->wait_ns += waited;
    lock->stats->contended -= lock->stats->contended > 0;
    thread->stats->wait_ns += waited;
    thread->lock = NULL;
    thread->pc--;
    return 1;
}

#define AS_USUAL (-1.0)

/* Takes a free lock after a wait, for `cost_ns` or AS_USUAL; true if the thread goes on at once. */
static inline int
seize(state *s, sim_thread *thread, sim_lock *lock, double cost_ns)
{
    if (gil_comes_first(s, thread, lock)) {
        return 1;
    }
    double usual_ns = take(s, lock, thread, 0);
    double cost = cost_ns < 0 ? usual_ns : cost_ns;
    if (cost > 0) {
        begin(s, thread, TAKE, cost);
        return 0;
    }
    thread->phase = NEXT;
    thread->remaining = 0;
    return 1;
}

/* Gives a free lock to one of its spinners, each as likely; NULL if there is none. */
static sim_thread *
claim(state *s, sim_lock *lock)
{
    lock->claimed = 0;
    if (!is_free(lock) || lock->spin_first == NULL) {
        return NULL;
    }
    int64_t place = (int64_t)(random_next(&s->seed) * (double)lock->spinning);
    sim_thread *thread = lock->spin_first;
    while (place-- > 0) {
        thread = thread->spin_next;
    }
    settle(s, thread);
    spinners_remove(lock, thread);
    thread->phase = NEXT;
    thread->remaining = 0;
    if (!gil_comes_first(s, thread, lock)) {
        take(s, lock, thread, 0); /* the hand-off's time, already spent, was all it cost */
    }
    return thread;
}

/* The functions below handle the end of a waiter's phase; true if the thread goes on at once. */

static int
spin_over(state *s, sim_thread *thread)
{
    sim_lock *lock = thread->lock;
    spinners_remove(lock, thread);
    if (lock->policy->order == ORDER_COMPETITIVE && is_free(lock)) {
        return seize(s, thread, lock, AS_USUAL);
    }
    if (lock->policy->spin_end == SPIN_END_PARK) {
        begin(s, thread, PARKING, lock->policy->park_ns);
    }
    else if (!s->ready_count) {
        spin(s, thread, lock);
    }
    else {
        sim_core *core = thread->core;
        thread->phase = NEXT;
        stop(s, core);
        thread->phase = SPIN;
        thread->remaining = lock->policy->spin_ns;
        thread->deadline += s->machine->slice_ns; /* as sched_yield does */
        thread->place = READY;
        thread->ready_since = s->now;
        ready_push(s, thread);
        start(s, core, ready_pop(s));
    }
    return 0;
}

static int
poll(state *s, sim_thread *thread)
{
    sim_lock *lock = thread->lock;
    double cost = handoff_ns(lock);
    lock->polling--;
    if (is_free(lock)) {
        return seize(s, thread, lock, cost);
    }
    thread->backoff *= 2;
    if (thread->backoff > lock->policy->backoff_max_ns) {
        thread->backoff = lock->policy->backoff_max_ns;
    }
    back_off(s, thread, lock, 0);
    return 0;
}

/* Goes to sleep, unless the lock is free by now. */
static int
park(state *s, sim_thread *thread)
{
    sim_lock *lock = thread->lock;
    if (lock == NULL) {
        return 1; /* a reply that came meanwhile */
    }
    if (lock->policy->order == ORDER_COMPETITIVE) {
        if (is_free(lock) && lock->barred != thread) {
            return seize(s, thread, lock, AS_USUAL);
        }
        waiters_push(lock, thread);
    }
    lock->stats->parks++;
    thread->parked = 1;
    if (lock == s->gil) {
        thread->switches_seen = lock->switches;
        watch(s, thread, s->now + s->machine->gil_interval_ns);
    }
    leave(s, thread, BLOCKED);
    return 0;
}

/* Tries again after having been woken. */
static int
retry(state *s, sim_thread *thread)
{
    sim_lock *lock = thread->lock;
    lock->waking -= !thread->timed_out;
    if (is_free(lock)) {
        return seize(s, thread, lock, AS_USUAL);
    }
    thread->demands = thread->timed_out && lock->switches == thread->switches_seen;
    wait_more(s, thread, lock, 0);
    return 0;
}

#endif
