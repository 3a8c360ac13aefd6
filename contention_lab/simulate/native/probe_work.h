/* What all measurements need: a clock, a pause, work of a given length, and threads on given CPUs.
 *
 * Linux only. Nothing here touches Python. */
#ifndef CLS_PROBE_WORK_H
#define CLS_PROBE_WORK_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define CACHE_LINE 128 /* two lines: neighbours are fetched in pairs */

static inline uint64_t
clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

/* Work that no two processors do differently fast for reasons of memory: a chain of additions that the
 * compiler may not shorten. */
static inline void
work_rounds(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        __asm__ __volatile__("" : "+r"(i));
    }
}

/* Rounds of work in a thousand nanoseconds: the fastest of some tries, since others only slow down. */
static double
rounds_per_ns(void)
{
    const uint64_t rounds = 400000;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t began = clock_ns();
        work_rounds(rounds);
        uint64_t spent = clock_ns() - began;
        best = spent < best ? spent : best;
    }
    return (double)rounds / (double)(best ? best : 1);
}

/* Pins a thread that is about to be made to a CPU; any, if negative. An errno, or 0. */
static int
pin(pthread_attr_t *attributes, int cpu)
{
    if (cpu < 0) {
        return 0;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= CPU_SETSIZE) {
        return EINVAL;
    }
    CPU_SET(cpu, &set);
    return pthread_attr_setaffinity_np(attributes, sizeof set, &set);
}

/* Starts a thread on a CPU. An errno, or 0. */
static int
start_on(int cpu, pthread_t *thread, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = pin(&attributes, cpu);
    if (error == 0) {
        error = pthread_create(thread, &attributes, run, argument);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

#endif
