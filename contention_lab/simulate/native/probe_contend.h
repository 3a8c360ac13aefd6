/* Threads that think, acquire, hold and release, each the same number of times, each timed by itself. */
#ifndef CLS_PROBE_CONTEND_H
#define CLS_PROBE_CONTEND_H

#include "probe_locks.h"

#define CLOCK_EVERY 64 /* operations between two looks at the clock */

typedef struct {
    probe_lock lock;
    int kind;
    uint64_t hold_rounds, think_rounds, operations, limit_ns;
    alignas(CACHE_LINE) atomic_int arrived;
    int threads;
    alignas(CACHE_LINE) atomic_int go, given_up;
    alignas(CACHE_LINE) atomic_int running;
} contest;

typedef struct {
    mcs_node node;
    contest *contest;
    uint64_t done, spent_ns;
    pthread_t thread;
} contender;

static void *
contend_run(void *argument)
{
    contender *self = argument;
    contest *shared = self->contest;
    atomic_fetch_add_explicit(&shared->arrived, 1, memory_order_relaxed);
    while (!atomic_load_explicit(&shared->go, memory_order_acquire)) {
        if (atomic_load_explicit(&shared->given_up, memory_order_relaxed)) {
            return NULL;
        }
        sched_yield();
    }
    /* Nobody begins before everybody is on a core: whoever had the lock to itself would be done. */
    atomic_fetch_add_explicit(&shared->running, 1, memory_order_relaxed);
    while (atomic_load_explicit(&shared->running, memory_order_relaxed) < shared->threads) {
        relax();
    }
    uint64_t began = clock_ns(), now = began, done = 0;
    while (done < shared->operations && now - began < shared->limit_ns) {
        work_rounds(shared->think_rounds);
        lock_acquire(shared->kind, &shared->lock, &self->node);
        work_rounds(shared->hold_rounds);
        lock_release(shared->kind, &shared->lock, &self->node);
        if (++done % CLOCK_EVERY == 0) {
            now = clock_ns();
        }
    }
    self->done = done;
    self->spent_ns = clock_ns() - began;
    return NULL;
}

/* Runs a contest among `threads` threads, the i-th on cpus[i]. An errno, or 0. */
static int
contend(contest *shared, contender *contenders, const int *cpus)
{
    int error = 0, started = 0;
    for (; started < shared->threads; started++) {
        contenders[started].contest = shared;
        error = start_on(cpus[started], &contenders[started].thread, contend_run,
                         &contenders[started]);
        if (error != 0) {
            atomic_store_explicit(&shared->given_up, 1, memory_order_relaxed);
            break;
        }
    }
    while (error == 0
           && atomic_load_explicit(&shared->arrived, memory_order_relaxed) < shared->threads) {
        sched_yield();
    }
    if (error == 0) {
        atomic_store_explicit(&shared->go, 1, memory_order_release);
    }
    for (int i = 0; i < started; i++) {
        pthread_join(contenders[i].thread, NULL);
    }
    return error;
}

#endif
