/* Samples who holds the GIL, about once a millisecond, and what the threads do meanwhile (activity.h).
 *
 * A thread of its own reads two words of the interpreter (cl_gil_read) and passes the samples to the writer
 * through a ring. Where the layer sees every change of the holder it is asked instead (gil_events.h): then the
 * samples only say which of the threads looked at had the GIL. On a build without a GIL it samples threads
 * only. Costs two context switches a sample.
 */
#ifndef CL_GIL_PROBE_H
#define CL_GIL_PROBE_H

#include "activity.h"

#define CL_GIL_PERIOD_NS 1000000
#define CL_GIL_QUIET_NS 8000000 /* while one thread has it to itself: a wake-up costs some 30 us */
#define CL_GIL_SAME 20          /* samples with the same last holder, from which that is assumed */
#define CL_GIL_FIRST_NS 3000000000u /* so long beats may take their share of a CPU, then less */
#define CL_GIL_SLICE_NS 500000u      /* on a core: more than a beat takes, much less than is usual */
#define CL_GIL_RING_BYTES (1u << 18) /* of all kinds: the writer may be away for two seconds */

/* What beats may take. A beat costs the program's threads as much again: some 30 us in its own thread, cold. */
typedef struct {
    uint64_t free_ns;      /* CPU time beyond the share: short programs */
    uint64_t share, later; /* one in so many nanoseconds, at first and after CL_GIL_FIRST_NS */
    uint64_t longest_ns;   /* from one beat to the next */
} cl_gil_budget;

static const cl_gil_budget cl_gil_sampled = {4000000u, 100u, 300u, 20000000u};
static const cl_gil_budget cl_gil_told = {1500000u, 400u, 800u, 50000000u}; /* the layer says who has the GIL */

static struct {
    pthread_t thread;
    int running;
    _Atomic uint32_t native_id;
    _Atomic uint32_t stop;
    cl_ring ring;
    uint64_t dropped;
} cl_gil_probe;

/* The recorded thread behind a thread state, 0 if it has not been recorded. */
static uint32_t
cl_gil_holder(const void *tstate)
{
#if !CL_FREE_THREADED
    /* Addresses are compared, not followed: a stale entry costs a wrong sample at worst. */
    for (uint32_t i = 0; i < CL_DIRECTORY && i < cl_directory_used; i++) {
        if (cl_directory[i].tstate == tstate) {
            return cl_directory[i].thread;
        }
    }
#else
    (void)tstate;
#endif
    return 0;
}

/* Who has the GIL: 1 if that is known. `holder` stands for whoever has it or had it last. */
static int
cl_gil_look(cl_gil_sample *sample, const void **holder)
{
    if (cl_gil.is_seen) {
        if (atomic_load_explicit(&cl_gil.since, memory_order_relaxed) != 0) {
            sample->holder = atomic_load_explicit(&cl_gil.holder, memory_order_relaxed);
            sample->flags = CL_GIL_HELD;
            *holder = (const void *)(uintptr_t)sample->holder;
        }
        return 1;
    }
    int locked;
    if (!cl_gil_read(&locked, holder)) {
        return 0;
    }
    if (locked) {
        sample->holder = cl_gil_holder(*holder);
        sample->flags = CL_GIL_HELD;
    }
    return 1;
}

/* When beats may have taken so much CPU time. Nanoseconds since the probe began. */
static uint64_t
cl_gil_probe_earned(const cl_gil_budget *budget, uint64_t spent_ns)
{
    uint64_t dear = spent_ns > budget->free_ns ? spent_ns - budget->free_ns : 0;
    uint64_t first = CL_GIL_FIRST_NS / budget->share;
    return dear <= first ? budget->share * dear : CL_GIL_FIRST_NS + budget->later * (dear - first);
}

/* From half of a period to one and a half, a period on average. At a steady pace all beats may fall into the
 * same part of what a program does again and again; and one that waits for the GIL to look at stacks is even
 * drawn into it. */
static uint64_t
cl_gil_probe_uneven(uint64_t period_ns, uint64_t *random)
{
    *random ^= *random << 13; /* Marsaglia's xorshift, 2003; never 0 */
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return period_ns / 2 + *random % period_ns;
}

/* How long to wait until the next beat. */
static uint64_t
cl_gil_probe_period(unsigned same, uint64_t began_ns, uint64_t *random)
{
    uint64_t period = same < CL_GIL_SAME ? CL_GIL_PERIOD_NS : CL_GIL_QUIET_NS;
    const cl_gil_budget *budget = cl_gil.is_seen ? &cl_gil_told : &cl_gil_sampled;
    uint64_t earned_ns = cl_gil_probe_earned(budget, cl_thread_cpu_ns());
    uint64_t elapsed_ns = cl_monotonic_ns() - began_ns;
    if (earned_ns > elapsed_ns) {
        uint64_t due = earned_ns - elapsed_ns;
        period = due < period ? period : due > budget->longest_ns ? budget->longest_ns : due;
    }
    return period > CL_GIL_PERIOD_NS ? cl_gil_probe_uneven(period, random) : period;
}

/* Gives this thread descriptors of its own, none of which is the program's: those it opens in /proc take no
 * number that the program counts on, and what the program closes is not ours. */
static void
cl_gil_probe_part_descriptors(void)
{
#if defined(__linux__)
    int parted = 0;
#  if defined(SYS_close_range)
    /* CLOSE_RANGE_UNSHARE, Linux 5.9; without, we share */
    parted = syscall(SYS_close_range, 0u, ~0u, 1u << 1) == 0;
#  endif
    cl_task_begin(parted);
#endif
}

/* Asks for short slices, which Linux since 6.12 gives at once: a beat that waits for the core of a thread with the
 * GIL until that sleeps would find the GIL free, again and again. */
static void
cl_gil_probe_be_prompt(void)
{
#if defined(__linux__) && defined(SYS_sched_setattr)
    struct { /* sched_attr of the kernel, its first version */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } wanted = {.size = sizeof wanted, .policy = SCHED_OTHER, .nice = getpriority(PRIO_PROCESS, 0),
                .runtime = CL_GIL_SLICE_NS};
    if (sched_getscheduler(0) == SCHED_OTHER) {
        syscall(SYS_sched_setattr, 0, &wanted, 0u); /* refused: it samples all the same */
    }
#endif
}

static void *
cl_gil_probe_main(void *unused)
{
    (void)unused;
#if defined(__linux__)
    prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "clt-gil", 0, 0, 0);
#endif
    cl_gil_mine.is_recorders = 1;
    cl_gil_probe_part_descriptors();
    cl_gil_probe_be_prompt();
    atomic_store_explicit(&cl_gil_probe.native_id, cl_native_thread_id(), memory_order_relaxed);
    const void *last_holder = NULL;
    unsigned same = 0;
    uint64_t began_ns = cl_monotonic_ns(), random = began_ns | 1u;
    int had_gil = 0;
    cl_activity.own_ids[0] = cl_native_thread_id();
    for (;;) {
        uint64_t period = cl_gil_probe_period(same, began_ns, &random);
        cl_park(&cl_gil_probe.stop, 0, cl_monotonic_ns() + period);
        if (atomic_load_explicit(&cl_gil_probe.stop, memory_order_relaxed)) {
            break;
        }
        cl_activity.own_ids[1] =
            atomic_load_explicit(&cl_session.writer_native_id, memory_order_relaxed);
        cl_activity_states(&cl_gil_probe.ring);
        const void *holder = last_holder;
        cl_gil_sample sample = {.time_ns = cl_now()};
        if (!cl_gil_look(&sample, &holder)) {
            same++;
            cl_activity_rest(&cl_gil_probe.ring, &cl_gil_probe.stop);
            continue;
        }
        if (had_gil) { /* that there is another holder now is our doing */
            last_holder = holder;
        }
        same = holder == last_holder ? same + 1 : 0;
        last_holder = holder;
        uint64_t next_tail;
        void *room = cl_ring_reserve(&cl_gil_probe.ring, CL_GIL, sizeof sample, &next_tail);
        if (room == NULL) {
            cl_gil_probe.dropped++;
        }
        else {
            memcpy(room, &sample, sizeof sample);
            cl_ring_commit(&cl_gil_probe.ring, next_tail);
        }
        /* After the look at the GIL, which belongs to the states. */
        had_gil = cl_activity_rest(&cl_gil_probe.ring, &cl_gil_probe.stop);
    }
    return NULL;
}

/* Makes the probe ready; not having it is no reason to fail. */
static void
cl_gil_probe_init(void)
{
    memset(&cl_gil_probe, 0, sizeof cl_gil_probe);
    cl_gil_probe.ring.capacity = CL_GIL_RING_BYTES;
    cl_gil_probe.ring.data = malloc(CL_GIL_RING_BYTES);
    cl_activity_init();
}

/* Starts the probe, if it is ready. Signals are the caller's. */
static void
cl_gil_probe_start(void)
{
    if (cl_gil_probe.ring.data == NULL) {
        return;
    }
    atomic_store_explicit(&cl_gil_probe.stop, 0, memory_order_relaxed);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    cl_gil_probe.running =
        pthread_create(&cl_gil_probe.thread, &attributes, cl_gil_probe_main, NULL) == 0;
    pthread_attr_destroy(&attributes);
}

/* Waits for the probe to end; its ring is emptied by the writer afterwards. Without the GIL. */
static void
cl_gil_probe_stop(void)
{
    if (cl_gil_probe.running) {
        atomic_store_explicit(&cl_gil_probe.stop, 1, memory_order_seq_cst);
        cl_unpark_one(&cl_gil_probe.stop);
        pthread_join(cl_gil_probe.thread, NULL);
        cl_gil_probe.running = 0;
    }
}

#endif
