/* Samples what threads do: on a CPU, waiting for the GIL, in a lock of the C library, or in which kind of
 * system call; with their Python stacks a few times a second. And how many threads of the process want a
 * CPU, those of native libraries among them.
 *
 * It runs on the GIL probe's thread (gil_probe.h) and asks the kernel. Threads in a wait that is recorded
 * anyway are left out, except for stacks. Only for stacks is the GIL taken, and only if threads have just
 * been seen to wait for it (and no layer records such waits), more threads wanted a CPU than there are, one
 * slept in native code or waited for a file lock, one waits for others to do something, or an event loop is
 * kept by one callback: a program that does none of this is never disturbed.
 */
#ifndef CL_ACTIVITY_H
#define CL_ACTIVITY_H

#include <sched.h>

#include "gil_events.h"
#include "proc_task.h"
#include "thread.h"

#define CL_STATES_AT_ONCE 3          /* 2 to 4 us each, in every beat of the probe */
#define CL_STACKS_EVERY_NS 50000000u /* with the GIL: some us for each thread */
#define CL_STACKS_AT_FIRST_NS 10000000u /* a short program must give enough of them */
#define CL_STACKS_AT_ONCE 64
#define CL_LONG_STEP_NS 2000000u /* of an event loop */
#define CL_LOAD_EVERY_NS 25000000u /* at least; 100 times what a look costs at most */
#define CL_TASKS 4096

static struct {
    uint64_t last_load_ns, load_every_ns, last_stacks_ns;
    uint32_t next;          /* the slot to look at first */
    uint32_t curious;       /* there is a reason to look at stacks */
    _Atomic uint32_t in_gil; /* takes the GIL, or has it */
    uint32_t cores;
    uint32_t own_ids[2];     /* the recorder's own threads */
} cl_activity;

static void
cl_activity_put(cl_ring *ring, uint32_t kind, const void *record, uint32_t bytes)
{
    uint64_t next_tail;
    void *room = cl_ring_reserve(ring, kind, bytes, &next_tail);
    if (room != NULL) { /* else the writer is away: a sample less */
        memcpy(room, record, bytes);
        cl_ring_commit(ring, next_tail);
    }
}

static int
cl_activity_sample(uint32_t slot, uint32_t stack, cl_ring *ring)
{
    uint32_t native_id = atomic_load_explicit(&cl_slots[slot].native_id, memory_order_acquire);
    cl_state_record sample = {
        .thread = atomic_load_explicit(&cl_slots[slot].thread, memory_order_relaxed), .stack = stack};
    if (native_id == 0 || native_id == CL_SLOT_TAKEN
        || !cl_task_state(native_id, &sample.state, &sample.call)) {
        return 0;
    }
    sample.time_ns = cl_now();
    if (sample.state == CL_STATE_RUNNABLE) {
        cl_task_times(native_id, &sample.cpu_ns, &sample.delay_ns);
    }
    /* What waits for the GIL at which place the layer says without taking it. */
    cl_activity.curious |= (sample.state == CL_STATE_AWAITS_GIL && !cl_gil.is_seen)
                           || sample.call == CL_CALL_NATIVE_SLEEP
                           || sample.call == CL_CALL_FILE_LOCK;
    cl_activity_put(ring, CL_STATES, &sample, sizeof sample);
    return 1;
}

static void
cl_activity_states(cl_ring *ring)
{
    uint32_t used = atomic_load_explicit(&cl_slots_used, memory_order_relaxed);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < used && taken < CL_STATES_AT_ONCE; i++) {
        uint32_t slot = (cl_activity.next + i) % used;
        if (atomic_load_explicit(&cl_slots[slot].doing, memory_order_relaxed) == CL_DOES_ANYTHING
            && cl_activity_sample(slot, 0, ring) && ++taken == CL_STATES_AT_ONCE) {
            cl_activity.next = slot + 1;
        }
    }
}

#if defined(__linux__)

/* Whether a thread is the program's, recorded. */
static int
cl_activity_recorded(uint32_t native_id)
{
    uint32_t used = atomic_load_explicit(&cl_slots_used, memory_order_relaxed);
    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&cl_slots[i].native_id, memory_order_relaxed) == native_id) {
            return 1;
        }
    }
    return 0;
}

static void
cl_activity_load(cl_ring *ring)
{
    struct entry { /* of getdents64() */
        uint64_t inode;
        int64_t offset;
        uint16_t length;
        uint8_t type;
        char name[];
    };
    _Alignas(8) char entries[8192];
    cl_load_record load = {.time_ns = cl_now()};
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t tasks = 0;
    long bytes;
    while (fd >= 0 && (bytes = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < bytes && tasks < CL_TASKS;) {
            const struct entry *entry = (const struct entry *)(const void *)(entries + at);
            at += entry->length;
            uint32_t id = (uint32_t)strtoul(entry->name, NULL, 10);
            if (id == 0 || id == cl_activity.own_ids[0] || id == cl_activity.own_ids[1]) {
                continue;
            }
            tasks++;
            uint16_t state, call;
            uint64_t cpu_ns, delay_ns;
            if (!cl_task_state(id, &state, &call)) {
                continue;
            }
            cl_task_times(id, &cpu_ns, &delay_ns);
            load.delay_ns += delay_ns;
            if (cl_activity_recorded(id)) {
                load.threads++;
                load.runnable += state == CL_STATE_RUNNABLE;
            }
            else {
                load.native_threads++;
                load.native_runnable += state == CL_STATE_RUNNABLE;
                load.native_cpu_ns += cpu_ns;
            }
        }
    }
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    struct rusage usage;
    if (tasks == 0 || getrusage(RUSAGE_SELF, &usage) != 0) {
        return;
    }
    load.involuntary = (uint64_t)usage.ru_nivcsw;
    load.voluntary = (uint64_t)usage.ru_nvcsw;
    cl_activity.curious |= load.runnable + load.native_runnable > cl_activity.cores;
    cl_activity_put(ring, CL_LOAD, &load, sizeof load);
}

#else

static void
cl_activity_load(cl_ring *ring)
{
    (void)ring;
}

#endif

#if !CL_FREE_THREADED

/* Notes where the callback of an event loop is that runs in the thread of a slot. */
static void
cl_activity_saw_step(uint32_t slot, uint32_t stack)
{
    uint32_t thread = atomic_load_explicit(&cl_slots[slot].thread, memory_order_relaxed);
    if (thread == atomic_load_explicit(&cl_step_thread, memory_order_relaxed)) {
        atomic_store_explicit(&cl_step_stack, stack, memory_order_relaxed);
        /* release: the stack is there */
        atomic_store_explicit(&cl_step_seen, atomic_load_explicit(&cl_step_since, memory_order_relaxed),
                              memory_order_release);
    }
}

/* Samples all recorded threads with their stacks, under the GIL. */
static void
cl_activity_stacks(cl_ring *ring, _Atomic uint32_t *stop)
{
    /* seq_cst: either we see `stop`, or who set it sees us and lets go of the GIL until we are through. */
    atomic_store_explicit(&cl_activity.in_gil, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(stop, memory_order_seq_cst) && cl_interpreter_lives()) {
        PyGILState_STATE state = PyGILState_Ensure();
        uint32_t used = atomic_load_explicit(&cl_slots_used, memory_order_relaxed);
        uint32_t taken = 0;
        for (uint32_t i = 0; i < used && taken < CL_STACKS_AT_ONCE; i++) {
            uint32_t thread = atomic_load_explicit(&cl_slots[i].thread, memory_order_relaxed);
            uint32_t stack = cl_holder_stack(thread, cl_frame_cache, cl_session.stack_depth);
            if (stack != 0) {
                cl_activity_saw_step(i, stack);
                taken += (uint32_t)cl_activity_sample(i, stack, ring);
            }
        }
        PyGILState_Release(state);
    }
    atomic_store_explicit(&cl_activity.in_gil, 0, memory_order_seq_cst);
}

/* Lets the sampler through, should it be waiting for the GIL. With the GIL, after `stop` was set. */
static void
cl_activity_let_through(void)
{
    if (atomic_load_explicit(&cl_activity.in_gil, memory_order_seq_cst)) {
        PyThreadState *tstate = PyEval_SaveThread();
        while (atomic_load_explicit(&cl_activity.in_gil, memory_order_seq_cst)) {
            struct timespec moment = {0, 100000};
            nanosleep(&moment, NULL);
        }
        PyEval_RestoreThread(tstate);
    }
}

#else

static void
cl_activity_stacks(cl_ring *ring, _Atomic uint32_t *stop)
{
    (void)ring;
    (void)stop;
}

static void
cl_activity_let_through(void)
{
}

#endif

/* Whether somebody waits for what other threads are doing, or an event loop for one callback. */
static int
cl_activity_awaited(uint64_t now)
{
    uint64_t since = atomic_load_explicit(&cl_step_since, memory_order_relaxed);
    if (since != 0 && now > since && now - since >= CL_LONG_STEP_NS) {
        return 1;
    }
    uint32_t used = atomic_load_explicit(&cl_slots_used, memory_order_relaxed);
    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&cl_slots[i].doing, memory_order_relaxed) == CL_AWAITS_OTHERS) {
            return 1;
        }
    }
    return 0;
}

/* How long to wait between two looks at stacks: a fiftieth of the recording so far, within bounds. */
static uint64_t
cl_activity_stacks_every(uint64_t now)
{
    uint64_t wanted = now / 50u;
    return wanted < CL_STACKS_AT_FIRST_NS ? CL_STACKS_AT_FIRST_NS
           : wanted > CL_STACKS_EVERY_NS  ? CL_STACKS_EVERY_NS
                                          : wanted;
}

/* What follows the look at the GIL in a beat. 1 if it had the GIL itself. */
static int
cl_activity_rest(cl_ring *ring, _Atomic uint32_t *stop)
{
    uint64_t now = cl_now();
    if (now - cl_activity.last_load_ns >= cl_activity.load_every_ns) {
        cl_activity.last_load_ns = now;
        uint64_t begun_ns = cl_thread_cpu_ns(); /* waiting for a core costs the program nothing */
        cl_activity_load(ring);
        uint64_t cost_ns = 100u * (cl_thread_cpu_ns() - begun_ns);
        cl_activity.load_every_ns = cost_ns > CL_LOAD_EVERY_NS ? cost_ns : CL_LOAD_EVERY_NS;
    }
    if (cl_session.level < CL_LEVEL_PROFILE
        || now - cl_activity.last_stacks_ns < cl_activity_stacks_every(now)
        || !(cl_activity.curious || cl_activity_awaited(now))) {
        return 0;
    }
    cl_activity.last_stacks_ns = now;
    cl_activity.curious = 0;
    cl_activity_stacks(ring, stop);
    return 1;
}

/* Makes the sampler ready; not having it is no reason to fail. */
static void
cl_activity_init(void)
{
    memset(&cl_activity, 0, sizeof cl_activity);
    cl_activity.load_every_ns = CL_LOAD_EVERY_NS;
#if defined(__linux__)
    cpu_set_t usable;
    int known = sched_getaffinity(0, sizeof usable, &usable) == 0;
    cl_activity.cores = known ? (uint32_t)CPU_COUNT(&usable) : 1u;
#endif
}

#endif
