/* Looks out for a program that hangs, and reports on SIGUSR1. Both are the writer's business, so that they
 * work while every thread of Python is stuck and one of them has the GIL.
 *
 * The signal's handler is ours only where the program has none: it notes that a report is wanted. Where the
 * program installs its own, that one is called and we say so. Only somebody outside can ask: what the program
 * sends to itself, and what a forked child is sent, does what it would have done without us.
 */
#ifndef CL_HANG_WATCH_H
#define CL_HANG_WATCH_H

#include <sys/stat.h>

#include "hang_report.h"
#include "writer.h"

#define CL_LONG_CALLBACK_NS 1000000000u /* is told of on SIGUSR1 where nothing says what is long */

static struct {
    uint64_t after_ns; /* without a movement; 0: is not looked for */
    int aborts;
    int catches; /* SIGUSR1 is, or was, ours */
    pid_t pid;   /* of the process that looks out */
    int is_told; /* that it is the program's */
    _Atomic uint32_t asked;
    uint64_t last_look_ns, reported; /* what stood still when it was last reported */
    struct stat errors; /* the standard error stream that the program was given */
} cl_hang;

static int
cl_hang_is_asked(const siginfo_t *info)
{
    int is_sent = info->si_code == SI_USER || info->si_code == SI_QUEUE; /* others do not say by whom */
#ifdef SI_TKILL
    is_sent |= info->si_code == SI_TKILL;
#endif
    return is_sent && info->si_pid != cl_hang.pid && getpid() == cl_hang.pid
           && atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0;
}

static void
cl_hang_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    if (cl_hang_is_asked(info)) {
        atomic_store_explicit(&cl_hang.asked, 1, memory_order_release);
#if defined(__linux__) && !defined(CL_NO_FUTEX)
        cl_ring_bell(); /* a store and a system call; elsewhere the writer looks at its next beat */
#endif
    }
    else {
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = saved;
}

static int
cl_hang_has_signal(void)
{
    struct sigaction now;
    return sigaction(SIGUSR1, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO)
           && now.sa_sigaction == cl_hang_signal;
}

/* Begins to look out. `after_ns`: 0 for the signal only. */
static void
cl_hang_begin(uint64_t after_ns, int aborts)
{
    memset(&cl_hang, 0, sizeof cl_hang);
    fstat(STDERR_FILENO, &cl_hang.errors);
    cl_hang.pid = getpid();
    struct sigaction now, ours = {.sa_sigaction = cl_hang_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigemptyset(&ours.sa_mask);
    cl_hang.catches = sigaction(SIGUSR1, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO)
                      && now.sa_handler == SIG_DFL && sigaction(SIGUSR1, &ours, NULL) == 0;
    cl_hang.aborts = aborts;
    cl_hang.after_ns = after_ns;
}

/* Leaves the signal as it was, if it still is ours; also in a forked child. */
static void
cl_hang_end(void)
{
    if (cl_hang.catches && cl_hang_has_signal()) {
        signal(SIGUSR1, SIG_DFL);
    }
    memset(&cl_hang, 0, sizeof cl_hang);
}

static void
cl_hang_tell(const cl_buffer *text)
{
    struct stat now;
    if (fstat(STDERR_FILENO, &now) == 0 && now.st_dev == cl_hang.errors.st_dev
        && now.st_ino == cl_hang.errors.st_ino) {
        cl_report_send(STDERR_FILENO, text);
    }
}

/* Writes to the trace what goes on at this moment, so that it is there whatever happens to the process. */
static void
cl_hang_write(uint64_t now)
{
    cl_thread *first = cl_first_thread();
    for (cl_thread *thread = first; thread != NULL; thread = thread->next) {
        cl_record_open_waits(thread, now);
        cl_record_open_holds(first, thread, now, cl_session.level == CL_LEVEL_TRACE);
    }
    cl_writer.last_totals_ns = 0;
    cl_flush(0);
}

static void
cl_hang_report(const char *why, uint64_t now, int aborts)
{
    cl_buffer text = {0};
    cl_say(&text, "contention-lab: %s (process %u)\n", why, (unsigned)getpid());
    cl_report_loop(&text, now, cl_hang.after_ns != 0 ? cl_hang.after_ns : CL_LONG_CALLBACK_NS);
    cl_report_all(&text, now);
    cl_hang_write(now);
    cl_say(&text, "contention-lab: the trace is written up to here; %s\n",
           aborts ? "aborting" : "the program goes on");
    cl_hang_tell(&text);
    cl_buffer_free(&text);
}

/* Whether a task, one of `count` that have waited for long, waits for others of them that wait for it. */
static int
cl_hang_is_task_ring(const cl_wait_record *old, uint32_t count, uint32_t first)
{
    uint32_t at = first;
    for (uint32_t steps = 0; steps < count; steps++) {
        uint32_t next = 0;
        while (next < count && old[next].thread != old[at].holder) {
            next++;
        }
        if (next == count) {
            return 0;
        }
        if (next == first) {
            return 1;
        }
        at = next;
    }
    return 0;
}

/* What stands still in an event loop, as a number: a callback that does not return, tasks that wait for locks
 * while no callback runs, or for each other. */
static uint64_t
cl_hang_loop_state(uint64_t now)
{
    static cl_wait_record old[CL_OPEN_WAITS]; /* the writer's */
    uint64_t since = atomic_load_explicit(&cl_step_since, memory_order_relaxed);
    uint64_t ended = atomic_load_explicit(&cl_step_ended_ns, memory_order_relaxed);
    if (since != 0 && now >= since + cl_hang.after_ns) {
        return cl_mix(since);
    }
    int is_idle = since == 0 && ended != 0 && now >= ended + cl_hang.after_ns;
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed), count = 0;
    for (uint32_t at = 0; at < CL_OPEN_WAITS; at++) {
        cl_wait_record *wait = &old[count];
        count += cl_open_wait_read(at, epoch, wait) && wait->kind == CL_CONTENTION
                 && now >= wait->start_ns + cl_hang.after_ns;
    }
    uint64_t all = 0;
    for (uint32_t at = 0; at < count; at++) {
        if (is_idle || cl_hang_is_task_ring(old, count, at)) {
            all ^= cl_mix(old[at].start_ns ^ old[at].thread);
        }
    }
    return all;
}

/* What stands still, as a number: 0 if anything that holds or waits for a lock moves, unless some threads
 * wait for each other in a ring. Needs somebody who waits for a lock. */
static uint64_t
cl_hang_state(uint64_t now)
{
    uint64_t all = 0, rings = 0;
    int moves = 0, contended = 0;
    cl_thread *ring[CL_MOST_RING];
    for (cl_thread *thread = cl_first_thread(); thread != NULL; thread = thread->next) {
        cl_wait_record wait;
        int waits = cl_wait_of(thread, &wait) && wait.kind == CL_CONTENTION;
        if (!cl_is_live(thread) || (!waits && cl_held_count(thread) == 0)) {
            thread->still_since = 0;
            continue;
        }
        uint64_t since = cl_still_since(thread, now);
        if (now - since < cl_hang.after_ns) {
            moves = 1;
            continue;
        }
        uint64_t mark = cl_mix(thread->still_mark ^ thread->id);
        all ^= mark;
        contended |= waits;
        if (waits && cl_ring_of(thread, now - cl_hang.after_ns, ring) > 0) {
            rings ^= mark;
        }
    }
    return rings != 0 ? rings : moves || !contended ? 0 : all;
}

static void
cl_hang_say_whose_signal(void)
{
    if (cl_hang.after_ns != 0 && !cl_hang.is_told && (!cl_hang.catches || !cl_hang_has_signal())) {
        cl_hang.is_told = 1;
        cl_buffer text = {0};
        cl_say(&text, "contention-lab: the program handles SIGUSR1 itself, so it prints no report\n");
        cl_hang_tell(&text);
        cl_buffer_free(&text);
    }
}

/* The writer's look at each beat. */
static void
cl_hang_look(void)
{
    uint64_t now = cl_now();
    if (atomic_exchange_explicit(&cl_hang.asked, 0, memory_order_acquire)) {
        cl_hang_report("SIGUSR1: who holds and who waits", now, 0);
    }
    if (cl_hang.after_ns == 0 || now - cl_hang.last_look_ns < cl_hang.after_ns / 8) {
        return;
    }
    cl_hang.last_look_ns = now;
    cl_hang_say_whose_signal();
    uint64_t threads = cl_hang_state(now), loop = cl_hang_loop_state(now), state = threads ^ loop;
    if (state == 0 || state == cl_hang.reported) {
        cl_hang.reported = state;
        return;
    }
    cl_hang.reported = state;
    char why[96];
    snprintf(why, sizeof why, "%s has moved for %.3g s",
             threads != 0 ? "no thread that waits" : "nothing that waits in an event loop",
             (double)cl_hang.after_ns * 1e-9);
    cl_hang_report(why, now, cl_hang.aborts);
    if (cl_hang.aborts) {
        atomic_store_explicit(&cl_epoch, 0, memory_order_seq_cst);
        cl_flush_last();
        abort();
    }
}

#endif
