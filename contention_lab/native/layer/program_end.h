/* How the recording of a program that is not Python ends, and what is said then: in order, by a call that ends the
 * process at once, or by one that goes on in the background; by exec, see exec.h.
 */
#ifndef CL_LAYER_PROGRAM_END_H
#define CL_LAYER_PROGRAM_END_H

#include "program.h"

#define CL_PROGRAM_LAST_S 1 /* for the writer, where the program ends at once */

static void
cl_program_tell(uint64_t bytes, uint64_t waits)
{
    char text[1024];
    const char *line = cl_program.said;
    if (cl_program.failed != NULL && cl_program.error != 0) {
        char why[128] = "", counted[64] = "";
        if (waits > 0) {
            snprintf(counted, sizeof counted, "; %llu waits", (unsigned long long)waits);
        }
        snprintf(text, sizeof text, "%.640s%s, so %s%s\n", cl_program.failed,
                 strerror_r(cl_program.error, why, sizeof why),
                 bytes > 0 ? "the trace ends there" : "there is no trace", counted);
        line = text;
    }
    uint32_t forks = atomic_load_explicit(&cl_program_forks, memory_order_relaxed);
    int is_replaced = atomic_load_explicit(&cl_program_execs, memory_order_relaxed) != 0;
    if (line == cl_program.said && line != NULL && (forks > 0 || is_replaced)) {
        char children[64] = "";
        if (forks > 0) {
            snprintf(children, sizeof children, "contention-lab: %u forked child%s not recorded\n", forks,
                     forks == 1 ? " was" : "ren were");
        }
        snprintf(text, sizeof text, "%s%s%.*s", children,
                 is_replaced ? "contention-lab: the program that takes its place (exec) is not recorded\n" : "",
                 800, line);
        line = text;
    }
    struct stat now;
    if (line != NULL && fstat(2, &now) == 0 && now.st_dev == cl_program.error_stream.st_dev
        && now.st_ino == cl_program.error_stream.st_ino) {
        (void)!cl_quiet_write(2, line, strlen(line));
    }
}

/* Whether it is this process that is recorded, and its end has not been seen yet. */
static int
cl_program_ends_now(void)
{
    return cl_program.process != 0 && getpid() == cl_program.process
           && !atomic_exchange_explicit(&cl_program.ended, 1, memory_order_relaxed);
}

/* Lets the writer write all; 0 if it has not been able to. A thread that ends the process in a signal's handler may
 * have the allocator's lock, which the writer needs. */
static int
cl_program_stop_writer(int at_once)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CL_PROGRAM_LAST_S;
    atomic_store_explicit(&cl_program.stopping, 1, memory_order_release);
    cl_unpark_one(&cl_program.stopping);
    /* Refused if this is the writer, the last thread of all. */
    int result = at_once && cl_real.pthread_timedjoin_np != NULL
                     ? cl_real.pthread_timedjoin_np(cl_program.writer, NULL, &until)
                     : pthread_join(cl_program.writer, NULL);
    return result != ETIMEDOUT;
}

/* A program of one thread, in which nobody waited: its trace is made now. */
static void
cl_program_write_empty(void)
{
    cl_clock_zero();
    cl_program.tables = cl_program_tables_make(&cl_program.owned, cl_program.meta);
    cl_program_flush(cl_program.tables, 1);
    if (cl_program.tables != NULL) {
        cl_program_tables_grow(cl_program.tables);
    }
}

static void
cl_program_finish(int at_once)
{
    if (!cl_program_ends_now()) {
        return;
    }
    if (cl_program.owned.fd < 0) {
        cl_program_tell(0, 0);
        return;
    }
    contention_lab_layer_attach(NULL);
    int started = atomic_load_explicit(&cl_program.started, memory_order_relaxed);
    if (started && cl_program.tables != NULL && !cl_program_stop_writer(at_once)) {
        cl_program_tell(1, 0);
        return;
    }
    if (!started) {
        cl_program_write_empty();
    }
    uint64_t bytes = 0, waits = 0;
    if (cl_program.tables != NULL) {
        waits = cl_program.tables->wait_count;
        bytes = cl_program.tables->file.bytes_written;
        cl_program.error = cl_program.tables->file.error;
        cl_program.owned = cl_program.tables->file.owned; /* it may have been opened again */
        if (!at_once) {
            cl_program_tables_free(cl_program.tables);
            cl_program.tables = NULL;
        }
    }
    int error = cl_owned_close(&cl_program.owned);
    cl_program.error = cl_program.error != 0 ? cl_program.error : error;
    cl_program_tell(bytes, waits);
}

/* The program ends in order. */
__attribute__((destructor)) static void
cl_program_end(void)
{
    cl_program_finish(0);
}

/* It ends from within: with nothing more than what a signal's handler may do. */
static void
cl_program_end_at_once(void)
{
    int error = errno;
    cl_program_finish(1);
    errno = error;
}

/* Ways to end that run no destructor. In a forked child, and in one that shares the memory, they only end that. */
#define CL_PROGRAM_EXIT(name) \
    CL_PUBLIC void name(int status); \
    CL_PUBLIC void name(int status) \
    { \
        if (cl_program.process != 0) { \
            cl_program_end_at_once(); \
        } \
        if (CL_REAL(name) != NULL) { \
            cl_real.name(status); \
        } \
        for (;;) { \
            syscall(SYS_exit_group, status); \
        } \
    }

CL_PROGRAM_EXIT(_exit)
CL_PROGRAM_EXIT(_Exit)

/* This process ends in it, and a child goes on. */
CL_PUBLIC int daemon(int stays, int keeps_streams);

CL_PUBLIC int
daemon(int stays, int keeps_streams)
{
    if (CL_REAL(daemon) == NULL) {
        errno = ENOSYS;
        return -1;
    }
    cl_program.leaves = 1;
    int result = cl_real.daemon(stays, keeps_streams);
    cl_program.leaves = 0;
    return result;
}

#endif
