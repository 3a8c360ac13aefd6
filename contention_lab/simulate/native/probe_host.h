/* What a host's memory and scheduler cost: a cache line's way between cores, waking a sleeper, going
 * over to another thread, and how long a thread may run while another waits for its core. */
#ifndef CLS_PROBE_HOST_H
#define CLS_PROBE_HOST_H

#include "probe_locks.h"

#define SETTLE_NS 30000u    /* by then a thread that is about to sleep sleeps */
#define PREEMPTED_NS 50000u /* a longer gap between two looks at the clock was somebody else's */

/* Two threads, `self` 0 and 1. */
typedef struct {
    alignas(CACHE_LINE) atomic_uint turn;
    alignas(CACHE_LINE) atomic_uint asleep;
    alignas(CACHE_LINE) atomic_uint sent;
    alignas(CACHE_LINE) atomic_int go; /* 1: begin, -1: the other one could not be started */
    uint64_t sent_at, rounds, limit_ns;
    int same_cpu;
} duel;

typedef struct {
    duel *duel;
    unsigned self;
    uint64_t *samples;
    uint64_t count, first_ns, last_ns; /* rounds, and when the first and the last of them began */
} duellist;

/* Waits until both have been started; false if they have not. */
static int
begin_duel(duel *shared)
{
    int go;
    while ((go = atomic_load_explicit(&shared->go, memory_order_acquire)) == 0) {
        sched_yield();
    }
    return go > 0;
}

/* Counts a round, and looks at the clock in the first and the last. */
static inline void
note_round(duellist *me, uint64_t round)
{
    me->count = round + 1;
    if (round == 0) {
        me->first_ns = clock_ns();
    }
    else if (round + 1 == me->duel->rounds) {
        me->last_ns = clock_ns();
    }
}

/* Each waits for the word to be its own, and passes it on. */
static void *
pass_run(void *argument)
{
    duellist *me = argument;
    duel *shared = me->duel;
    if (!begin_duel(shared)) {
        return NULL;
    }
    uint64_t began = clock_ns();
    for (uint64_t i = 0; i < shared->rounds; i++) {
        unsigned tries = 0;
        while (atomic_load_explicit(&shared->turn, memory_order_acquire) != me->self) {
            if (++tries % 4096 == 0 && clock_ns() - began > shared->limit_ns) {
                return NULL;
            }
            relax();
        }
        note_round(me, i);
        atomic_store_explicit(&shared->turn, !me->self, memory_order_release);
    }
    return NULL;
}

/* The same, asleep while it is the other's turn. */
static void *
sleep_run(void *argument)
{
    duellist *me = argument;
    duel *shared = me->duel;
    for (uint64_t i = 0; begin_duel(shared) && i < shared->rounds; i++) {
        while (atomic_load_explicit(&shared->turn, memory_order_acquire) != me->self) {
            futex(&shared->turn, FUTEX_WAIT, !me->self);
        }
        note_round(me, i);
        atomic_store_explicit(&shared->turn, !me->self, memory_order_release);
        futex(&shared->turn, FUTEX_WAKE, 1);
    }
    return NULL;
}

/* The sleeper of a wake-up: notes how long after the call it runs. */
static void *
sleeper_run(void *argument)
{
    duellist *me = argument;
    duel *shared = me->duel;
    for (unsigned i = 1; begin_duel(shared) && i <= shared->rounds; i++) {
        atomic_store_explicit(&shared->asleep, i, memory_order_release);
        while (atomic_load_explicit(&shared->sent, memory_order_acquire) != i) {
            futex(&shared->sent, FUTEX_WAIT, i - 1);
        }
        me->samples[me->count++] = clock_ns() - shared->sent_at;
    }
    return NULL;
}

/* Its waker: notes how long the call takes. On the sleeper's own CPU it sleeps afterwards, so that the sleeper can run. */
static void *
waker_run(void *argument)
{
    duellist *me = argument;
    duel *shared = me->duel;
    for (unsigned i = 1; begin_duel(shared) && i <= shared->rounds; i++) {
        while (atomic_load_explicit(&shared->asleep, memory_order_acquire) != i) {
            if (shared->same_cpu) {
                struct timespec nap = {0, 1000};
                nanosleep(&nap, NULL);
            }
            else {
                relax();
            }
        }
        uint64_t began = clock_ns();
        while (clock_ns() - began < SETTLE_NS) {
            relax();
        }
        if (shared->same_cpu) {
            struct timespec nap = {0, SETTLE_NS};
            nanosleep(&nap, NULL);
        }
        shared->sent_at = clock_ns();
        atomic_store_explicit(&shared->sent, i, memory_order_release);
        futex(&shared->sent, FUTEX_WAKE, 1);
        me->samples[me->count++] = clock_ns() - shared->sent_at;
    }
    return NULL;
}

/* One of two threads that want the same CPU: notes how long it ran between two gaps. */
static void *
slice_run(void *argument)
{
    duellist *me = argument;
    int begun = begin_duel(me->duel), first = 1;
    uint64_t began = clock_ns(), run_began = began, last = began;
    while (begun && last - began < me->duel->limit_ns && me->count < me->duel->rounds) {
        uint64_t now = clock_ns();
        if (now - last > PREEMPTED_NS) {
            if (!first) {
                me->samples[me->count++] = last - run_began;
            }
            first = 0;
            run_began = now;
        }
        last = now;
    }
    return NULL;
}

/* Runs two threads on two CPUs and waits for both. An errno, or 0. */
static int
duel_run(duel *shared, duellist *both, const int *cpus, void *(*one)(void *), void *(*other)(void *))
{
    pthread_t threads[2];
    both[0].duel = both[1].duel = shared;
    both[1].self = 1;
    int error = start_on(cpus[0], &threads[0], one, &both[0]);
    if (error != 0) {
        return error;
    }
    error = start_on(cpus[1], &threads[1], other, &both[1]);
    atomic_store_explicit(&shared->go, error == 0 ? 1 : -1, memory_order_release);
    pthread_join(threads[0], NULL);
    if (error == 0) {
        pthread_join(threads[1], NULL);
    }
    return error;
}

#endif
