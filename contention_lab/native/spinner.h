/* A thread that spins, whatever for: it pauses between two looks, yields its core if asked to, and now and
 * then looks at the clock. Runs without the GIL.
 *
 * A spinner makes no system call that a signal could interrupt, so on the main thread it comes back for a
 * signal: one that is alone with a dead holder can be stopped with Ctrl-C.
 */
#ifndef CL_SPINNER_H
#define CL_SPINNER_H

#include <sched.h>

#include "wait_mutex.h"

#define CL_SPIN_BATCH 128          /* pauses between two looks at the clock */
#define CL_SPIN_MEASURE_NS 20000u  /* shorter spins are not worth two system calls (0.8 us) */
#define CL_SPIN_SIGNAL_NS 20000000u

enum { CL_SPIN_ON = -1 }; /* beside the results of a wait */

static inline void
cl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory"); /* `yield` is a no-op on most cores */
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

/* CPU time is read only once a spin has lasted a while; what came before counts as CPU time in full. */
typedef struct {
    uint64_t deadline, began;
    uint64_t start, cpu_zero, wall_zero; /* of what is measured: 0 not yet */
    uint64_t pauses;
    uint32_t rounds, yield_after;
    int timed, main_thread;
} cl_spinner;

static cl_spinner
cl_spinner_begin(const cl_lock *lock, uint64_t deadline, int timed)
{
    return (cl_spinner){.deadline = deadline, .began = cl_monotonic_ns(),
                        .start = timed ? cl_now() : 0, .yield_after = lock->yield_after,
                        .timed = timed, .main_thread = cl_is_main_thread()};
}

static int
cl_spinner_look(cl_spinner *spinner)
{
    uint64_t now = cl_monotonic_ns();
    if (now >= spinner->deadline) {
        return CL_WAIT_TIMED_OUT;
    }
    if (spinner->main_thread && now - spinner->began >= CL_SPIN_SIGNAL_NS) {
        if (cl_signal_pending() != 0) {
            return CL_WAIT_SIGNAL;
        }
        spinner->began = now;
    }
    if (spinner->timed && spinner->wall_zero == 0 && now - spinner->began >= CL_SPIN_MEASURE_NS) {
        spinner->cpu_zero = cl_thread_cpu_ns();
        spinner->wall_zero = cl_now();
    }
    return CL_SPIN_ON;
}

/* One look was in vain: pauses that often, or yields the core. CL_SPIN_ON, or why to stop. */
static inline int
cl_spinner_round(cl_spinner *spinner, uint32_t pauses)
{
    if (++spinner->rounds >= spinner->yield_after) {
        sched_yield();
        return cl_spinner_look(spinner);
    }
    for (uint32_t i = 0; i < pauses; i++) {
        cl_pause();
    }
    spinner->pauses += pauses;
    if (spinner->pauses < CL_SPIN_BATCH) {
        return CL_SPIN_ON;
    }
    spinner->pauses = 0;
    return cl_spinner_look(spinner);
}

static void
cl_spinner_end(const cl_spinner *spinner, cl_wait_parts *parts)
{
    parts->spins += spinner->rounds;
    if (!spinner->timed) {
        return;
    }
    uint64_t end = parts->acquired_at > spinner->start ? parts->acquired_at : cl_now();
    parts->spin_ns += end - spinner->start;
    if (spinner->wall_zero != 0) {
        uint64_t cpu = cl_thread_cpu_ns();
        parts->spin_cpu_ns += cpu - spinner->cpu_zero + (spinner->wall_zero - spinner->start);
        parts->cpu_at_end = cpu;
        parts->preemptions_at_end = cl_thread_preemptions();
    }
}

#endif
