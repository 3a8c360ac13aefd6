/* Nanoseconds since the start of the recording, from the invariant TSC where the kernel itself trusts
 * it (its current clock source is "tsc"), else from CLOCK_MONOTONIC.
 *
 * The conversion is one multiplication with a slope fixed for the life of the process, so that
 * differences of two stamps are exact and never negative on one thread. The slope is measured between
 * the import of the module and the first recording (at least 5 ms); what it has drifted since is
 * reported with each status record.
 */
#ifndef CL_CLOCK_H
#define CL_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#if defined(__x86_64__)
#  include <x86intrin.h>
#  define CL_HAVE_TSC 1
#else
#  define CL_HAVE_TSC 0
#endif

#define CL_CLOCK_MONOTONIC 0
#define CL_CLOCK_TSC 1

static struct {
    int source;
    uint64_t multiplier;   /* ns per tick, 32.32 fixed point */
    uint64_t import_ticks; /* the pair taken at import */
    uint64_t import_ns;
    uint64_t zero;         /* ticks at the start of the recording */
    uint64_t zero_ns;      /* CLOCK_MONOTONIC at the same moment */
} cl_clock;

static inline uint64_t
cl_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t
cl_thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* CPU time of a thread that may be running; 0 if the system does not tell. */
static inline uint64_t
cl_other_thread_cpu_ns(uint32_t native_id)
{
#if defined(__linux__)
    /* Linux packs the kernel's thread id into a clock id: ~tid << 3, 6 for "per thread, scheduler". */
    struct timespec now;
    clockid_t clock = (clockid_t)((~(unsigned)native_id << 3) | 6u);
    if (clock_gettime(clock, &now) == 0) {
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
#else
    (void)native_id;
#endif
    return 0;
}

/* How often the scheduler has taken the calling thread off its core against its will; 0 if the system
 * does not say. */
static inline uint32_t
cl_thread_preemptions(void)
{
#if defined(__linux__) && defined(RUSAGE_THREAD)
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint32_t)usage.ru_nivcsw : 0;
#else
    return 0;
#endif
}

static inline uint64_t
cl_process_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t
cl_ticks(void)
{
#if CL_HAVE_TSC
    if (cl_clock.source == CL_CLOCK_TSC) {
        return __rdtsc();
    }
#endif
    return cl_monotonic_ns();
}

static inline uint64_t
cl_ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * cl_clock.multiplier) >> 32);
}

/* Nanoseconds since cl_clock_zero(). A stamp a few ns before it (another core) reads as 0. */
static inline uint64_t
cl_now(void)
{
    uint64_t ticks = cl_ticks();
    return ticks > cl_clock.zero ? cl_ticks_to_ns(ticks - cl_clock.zero) : 0;
}

/* As cl_now(), but not before what precedes it: RDTSC alone may run ahead of an atomic operation whose
 * outcome the processor has guessed, and a hold would seem to begin before the last one ended. */
static inline uint64_t
cl_now_after(void)
{
#if CL_HAVE_TSC
    _mm_lfence();
#endif
    return cl_now();
}

/* A (ticks, ns) pair: of several readings the one with the narrowest bracket. */
static void
cl_clock_pair(uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = cl_ticks();
        uint64_t middle = cl_monotonic_ns();
        uint64_t after = cl_ticks();
        if (after - before < best) {
            best = after - before;
            *ticks = before + (after - before) / 2;
            *ns = middle;
        }
    }
}

static int
cl_kernel_trusts_tsc(void)
{
#if CL_HAVE_TSC && defined(__linux__)
    char source[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == NULL) {
        return 0;
    }
    if (fgets(source, sizeof source, file) == NULL) {
        source[0] = 0;
    }
    fclose(file);
    return strncmp(source, "tsc", 3) == 0;
#else
    return 0;
#endif
}

static void
cl_clock_import(void)
{
    cl_clock.multiplier = (uint64_t)1 << 32;
    cl_clock.source = cl_kernel_trusts_tsc() ? CL_CLOCK_TSC : CL_CLOCK_MONOTONIC;
    cl_clock_pair(&cl_clock.import_ticks, &cl_clock.import_ns);
}

/* Fixes the slope (first call) and sets the zero. */
static void
cl_clock_zero(void)
{
    static int calibrated = 0;
    uint64_t ticks, ns;
    cl_clock_pair(&ticks, &ns);
    if (!calibrated && cl_clock.source == CL_CLOCK_TSC) {
        while (ns - cl_clock.import_ns < 5000000u) {
            struct timespec pause = {0, 500000};
            nanosleep(&pause, NULL);
            cl_clock_pair(&ticks, &ns);
        }
        double slope = (double)(ns - cl_clock.import_ns) / (double)(ticks - cl_clock.import_ticks);
        cl_clock.multiplier = (uint64_t)(slope * 4294967296.0 + 0.5);
    }
    calibrated = 1;
    cl_clock.zero = ticks;
    cl_clock.zero_ns = ns;
}

/* Our clock minus CLOCK_MONOTONIC, since the zero. */
static int64_t
cl_clock_error_ns(void)
{
    uint64_t ticks, ns;
    cl_clock_pair(&ticks, &ns);
    return (int64_t)cl_ticks_to_ns(ticks - cl_clock.zero) - (int64_t)(ns - cl_clock.zero_ns);
}

#endif
