/* How an AdaptiveMutex waits: it spins while the holder runs on a core and is likely to be done soon, and
 * otherwise sleeps as a Mutex does. Runs without the GIL.
 *
 * Two things end a spin. The holder is off its core (preempted, blocked, or waiting for the GIL): its CPU
 * clock stands still between two looks; where a clock of another thread cannot be read, this is not known.
 * Or the spin has lasted longer than spins on this lock tend to pay off. That limit is learned, as in
 * HotSpot's monitors and glibc's PTHREAD_MUTEX_ADAPTIVE_NP: twice what successful ones took of late, less
 * after each that was in vain, and at most what sleeping and being woken costs (A. R. Karlin, K. Li,
 * M. S. Manasse and S. Owicki, "Empirical studies of competitive spinning for a shared-memory
 * multiprocessor", 1991: then it is never more than twice as bad as the better of the two).
 *
 * `holder` and `learned_ns` are hints: relaxed, and any value does no harm.
 */
#ifndef CL_WAIT_ADAPTIVE_H
#define CL_WAIT_ADAPTIVE_H

#include "spinner.h"

#define CL_ADAPTIVE_LEAST_NS 2000u /* so that it finds out when holds become short again */
#define CL_ADAPTIVE_MOST_NS 50000u
#define CL_ADAPTIVE_LOOK_NS 2000u  /* between two looks at the holder's clock, which cost 0.3 us each */

typedef struct {
    cl_lock lock; /* first; its `state` is the lock */
    _Atomic uint32_t holder;     /* native id of who acquired it last */
    _Atomic uint32_t learned_ns; /* how long spins tend to take that end with the lock */
} cl_adaptive_lock;

static CL_TLS uint32_t cl_my_native_id; /* 0: not asked for yet */

/* After a fork, the only thread there is has another id than before. */
static void
cl_adaptive_after_fork(void)
{
    cl_my_native_id = 0;
}

static inline void
cl_adaptive_own(cl_adaptive_lock *self)
{
    if (__builtin_expect(cl_my_native_id == 0, 0)) {
        cl_my_native_id = cl_native_thread_id();
    }
    atomic_store_explicit(&self->holder, cl_my_native_id, memory_order_relaxed);
}

static int
cl_adaptive_try(cl_adaptive_lock *self)
{
    if (!cl_word_try(&self->lock)) {
        return 0;
    }
    cl_adaptive_own(self);
    return 1;
}

/* Whether the holder has run since its clock showed `*clock_ns`, which is brought up to date. */
static int
cl_adaptive_runs(cl_adaptive_lock *self, uint32_t *holder, uint64_t *clock_ns)
{
#if defined(__linux__)
    uint32_t now_holder = atomic_load_explicit(&self->holder, memory_order_relaxed);
    uint64_t now = cl_other_thread_cpu_ns(now_holder);
    int runs = now_holder != *holder || (now != 0 && now > *clock_ns);
    *holder = now_holder;
    *clock_ns = now;
    return runs;
#else
    (void)self;
    (void)holder;
    (void)clock_ns;
    return 1;
#endif
}

static void
cl_adaptive_learn(cl_adaptive_lock *self, uint32_t learned, uint64_t took_ns, int paid)
{
    int64_t aim = paid ? (int64_t)took_ns : 0;
    int64_t change = (aim - (int64_t)learned) / (paid ? 8 : 4);
    atomic_store_explicit(&self->learned_ns, (uint32_t)((int64_t)learned + change),
                          memory_order_relaxed);
}

/* CL_SPIN_ON: the spin was in vain. */
static int
cl_adaptive_spin(cl_adaptive_lock *self, cl_spinner *spinner, cl_wait_parts *parts)
{
    uint32_t learned = atomic_load_explicit(&self->learned_ns, memory_order_relaxed), holder = 0;
    uint64_t limit = CL_ADAPTIVE_LEAST_NS + 2 * (uint64_t)learned, clock_ns = 0;
    limit = limit < CL_ADAPTIVE_MOST_NS ? limit : CL_ADAPTIVE_MOST_NS;
    uint64_t began = cl_monotonic_ns(), looked = began, now = began;
    int result = CL_SPIN_ON;
    for (uint32_t round = 1; result == CL_SPIN_ON && now - began < limit; round++) {
        /* relaxed: only a look; the compare-and-swap that follows does the ordering */
        if (atomic_load_explicit(&self->lock.state, memory_order_relaxed) == CL_FREE) {
            if (!CL_FREE_THREADED) { /* as a SpinLock: whoever runs meanwhile can use it */
                result = CL_WAIT_FREE;
            }
            else if (cl_adaptive_try(self)) {
                parts->acquired_at = spinner->timed ? cl_now_after() : 0;
                result = CL_WAIT_ACQUIRED;
            }
            continue;
        }
        spinner->rounds++;
        cl_pause();
        if (round % 16 == 0) {
            now = cl_monotonic_ns();
            if (now - looked >= CL_ADAPTIVE_LOOK_NS) {
                looked = now;
                if (!cl_adaptive_runs(self, &holder, &clock_ns)) {
                    break;
                }
            }
        }
    }
    cl_adaptive_learn(self, learned, cl_monotonic_ns() - began, result != CL_SPIN_ON);
    return result;
}

static int
cl_wait_adaptive(cl_adaptive_lock *self, uint64_t deadline, int timed, cl_wait_parts *parts)
{
    cl_spinner spinner = cl_spinner_begin(&self->lock, deadline, timed);
    int result = cl_adaptive_spin(self, &spinner, parts);
    cl_spinner_end(&spinner, parts);
    if (result == CL_SPIN_ON) {
        result = cl_wait_parked(&self->lock, deadline, timed, parts);
        if (result == CL_WAIT_ACQUIRED) {
            cl_adaptive_own(self);
        }
    }
    return result;
}

#endif
