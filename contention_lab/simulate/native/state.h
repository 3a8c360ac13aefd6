/* What the simulation knows at a moment: threads, cores, locks. It moves nothing by itself.
 *
 * Mirrors `reference/state.py`. No global state: any number of simulations may run at once. */
#ifndef CLS_STATE_H
#define CLS_STATE_H

#include <math.h>
#include <string.h>

#include "event_heap.h"
#include "random.h"
#include "tables.h"

/* What the CPU time of a thread is spent on; after it, the thread goes on as threads.h says. */
enum { NEXT, COMPUTE, TAKE, CALLING, SPIN, POLL, PARKING, RETRY };
/* Where a thread is. */
enum { READY, RUNNING, BLOCKED, ENDED };
/* Kinds of events. */
enum { END, SLICE, WAKE, CLAIM, SWITCH, RESET };

typedef struct sim_lock sim_lock;
typedef struct sim_core sim_core;
typedef struct sim_thread sim_thread;

/* What a channel carries. */
typedef struct request {
    struct request *next;
    sim_thread *client; /* waits for the reply; NULL if nobody does */
    double ns, sent_at;
} request;

struct sim_thread {
    int32_t index, queue;
    uint64_t random;
    int64_t pc, stop;
    int place, phase;
    double remaining; /* CPU time left of the phase */
    double began;     /* since when it counts, once on a core */
    double pending;   /* computation to begin, which may need the GIL first */
    int pending_gil;
    sim_core *core, *last_core;
    uint32_t stamp;      /* an END or WAKE event with another stamp is void */
    sim_lock *lock;      /* the one it waits for */
    int reading, parked, has_gil;
    int timed_out, demands; /* woke up by itself after the GIL's interval; will ask for the GIL */
    double waiting_since, backoff, asked_at, ready_since;
    double vruntime, deadline; /* CPU time it has been given, and up to which it was promised */
    double lag;                /* what it was owed when it went to sleep; negative: had too much */
    double demand_at; /* when it will have waited for the GIL for an interval */
    int watched;      /* a SWITCH event is planned: at most one for each thread, at that time or before */
    uint64_t switches_seen;
    int32_t shard;
    sim_lock *serves;   /* the channel of which it does a request; NULL: none */
    sim_thread *client; /* of that request */
    sim_lock *held;     /* owned alone, newest first */
    sim_thread *ready_next, *wait_next, *wait_previous, *spin_next, *spin_previous;
    thread_stats *stats;
};

struct sim_core {
    int32_t index;
    sim_thread *thread, *last;
    double since;
    int armed; /* the end of the slice is planned */
    uint32_t stamp;
};

struct sim_lock {
    const lock_row *policy;
    const double *costs;
    lock_stats *stats;
    int32_t index;
    sim_thread *owner, *last;
    sim_lock *next_held;
    int64_t readers; /* those that have it together with others: permits that are out, too */
    int64_t writers_waiting, polling, spinning;
    sim_thread *wait_first, *wait_last; /* parked ones; all of them where hand-offs are direct */
    sim_thread *spin_first, *spin_last; /* those on a core */
    int32_t waking; /* how many woken ones are on their way */
    int claimed, drop;
    uint64_t switches;
    double busy_since;
    request *request_first, *request_last;
    sim_thread *idle_server;
    sim_thread *barred; /* the GIL: gave it up on demand, and waits until another has taken it */
};

typedef struct {
    const tables *in;
    results *out;
    const machine_row *machine;
    sim_thread *threads;
    sim_core *cores;
    sim_lock *locks;
    sim_lock *gil;
    int32_t *taken; /* the next item of each queue */
    int64_t idle, ready_count, unfinished;
    sim_thread *ready_first, *ready_last;
    int64_t runnable, running;
    double virtual_sum; /* vruntime of all that are runnable, less `began` of those on a core */
    uint64_t seed, handled, limit;
    double now, measured_from;
    int finite;
    event_heap heap;
} state;

static inline void
plan(state *s, double time, int32_t kind, int32_t who, uint32_t stamp)
{
    heap_push(&s->heap, time, kind, who, stamp);
}

/* Whether somebody may have it who does not share it with those that have it, as readers do. */
static inline int
is_free(const sim_lock *lock)
{
    return lock->owner == NULL && lock->readers < lock->policy->permits;
}

static inline double
handoff_ns(const sim_lock *lock)
{
    int64_t waiters = lock->spinning + lock->polling, last = lock->policy->costs_length - 1;
    return lock->costs[waiters < last ? waiters : last];
}

static inline double
duration(sim_thread *thread, double ns, uint16_t spread)
{
    if (spread == 0) {
        return ns;
    }
    double share = spread / 1000.0;
    double draw = -log(1.0 - random_next(&thread->random));
    return ns * ((1.0 - share) + share * draw);
}

/* Books the CPU time that a running thread has used until now. */
static inline void
settle(state *s, sim_thread *thread)
{
    double used = s->now - thread->began;
    if (used > 0) {
        if (thread->phase == SPIN || thread->phase == POLL) {
            thread->stats->spin_ns += used;
        }
        else if (thread->phase == COMPUTE) {
            thread->stats->run_ns += used;
        }
        else {
            thread->stats->overhead_ns += used;
        }
        thread->vruntime += used;
        double left = thread->remaining - used;
        thread->remaining = left > 0 ? left : 0;
        thread->began = s->now;
    }
}

static inline void
book_busy(state *s, sim_lock *lock)
{
    lock->stats->busy_ns += s->now - lock->busy_since;
    lock->busy_since = s->now;
}

/* Counts a response time: sixteen bins to an octave. */
static inline void
book_response(state *s, double response_ns)
{
    uint64_t bits;
    double at_least = response_ns > 1.0 ? response_ns : 1.0;
    memcpy(&bits, &at_least, sizeof bits);
    size_t place = (size_t)((bits >> 48) - (1023u << 4));
    s->out->responses[place < s->out->response_count ? place : s->out->response_count - 1]++;
}

static inline void
ready_push(state *s, sim_thread *thread)
{
    thread->ready_next = NULL;
    *(s->ready_last ? &s->ready_last->ready_next : &s->ready_first) = thread;
    s->ready_last = thread;
    s->ready_count++;
}

static inline void
ready_remove(state *s, sim_thread *before, sim_thread *thread)
{
    *(before ? &before->ready_next : &s->ready_first) = thread->ready_next;
    if (s->ready_last == thread) {
        s->ready_last = before;
    }
    s->ready_count--;
}

static inline void
waiters_push(sim_lock *lock, sim_thread *thread)
{
    thread->wait_next = NULL;
    thread->wait_previous = lock->wait_last;
    *(lock->wait_last ? &lock->wait_last->wait_next : &lock->wait_first) = thread;
    lock->wait_last = thread;
}

static inline void
waiters_remove(sim_lock *lock, sim_thread *thread)
{
    *(thread->wait_previous ? &thread->wait_previous->wait_next : &lock->wait_first) =
        thread->wait_next;
    *(thread->wait_next ? &thread->wait_next->wait_previous : &lock->wait_last) =
        thread->wait_previous;
}

static inline sim_thread *
waiters_pop(sim_lock *lock)
{
    sim_thread *first = lock->wait_first;
    waiters_remove(lock, first);
    return first;
}

static inline void
spinners_push(sim_lock *lock, sim_thread *thread)
{
    thread->spin_next = NULL;
    thread->spin_previous = lock->spin_last;
    *(lock->spin_last ? &lock->spin_last->spin_next : &lock->spin_first) = thread;
    lock->spin_last = thread;
    lock->spinning++;
}

static inline void
spinners_remove(sim_lock *lock, sim_thread *thread)
{
    *(thread->spin_previous ? &thread->spin_previous->spin_next : &lock->spin_first) =
        thread->spin_next;
    *(thread->spin_next ? &thread->spin_next->spin_previous : &lock->spin_last) =
        thread->spin_previous;
    lock->spinning--;
}

#endif
