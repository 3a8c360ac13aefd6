/* What the kernel says of one thread of this process. */
#ifndef CL_PROC_TASK_H
#define CL_PROC_TASK_H

#include <stdlib.h>

#include "pycompat.h"
#include "schema.h"

#if defined(__linux__)

#  include "task_files.h"

/* Whether an address lies within the GIL: a thread that sleeps on such a word waits for it. */
static inline int
cl_gil_contains(uintptr_t address)
{
    uintptr_t start, end;
    cl_gil_range(&start, &end);
    return address >= start && address < end;
}

/* What a system call that blocks is for. */
static uint16_t
cl_call_class(long call, unsigned long first, unsigned long second)
{
    switch (call) {
    case SYS_nanosleep:
        return CL_CALL_NATIVE_SLEEP;
    case SYS_clock_nanosleep: /* CPython sleeps until a time, C libraries for one */
        return first == 1 && second == 1 ? CL_CALL_SLEEP : CL_CALL_NATIVE_SLEEP;
    case SYS_flock:
        return CL_CALL_FILE_LOCK;
    case SYS_fcntl: /* of its commands only waiting for a lock blocks */
        return CL_CALL_FILE_LOCK;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
        return CL_CALL_READ;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_fsync:
    case SYS_fdatasync:
        return CL_CALL_WRITE;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
        return CL_CALL_SOCKET;
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#  ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#  endif
        return CL_CALL_POLL;
    case SYS_wait4:
    case SYS_waitid:
        return CL_CALL_PROCESS;
    default:
        return CL_CALL_OTHER;
    }
}

/* What a thread does at this moment. 0 if that is not to be known. */
static int
cl_task_state(uint32_t native_id, uint16_t *state, uint16_t *call)
{
    char text[256];
    *call = 0;
    if (!cl_task_read(native_id, CL_TASK_SYSCALL, text, sizeof text)) {
        return 0;
    }
    if (text[0] == 'r') {
        *state = CL_STATE_RUNNABLE;
        return 1;
    }
    char *at = text;
    long number = strtol(at, &at, 10);
    unsigned long first = strtoul(at, &at, 16), second = strtoul(at, &at, 16);
#  if defined(SYS_futex_waitv)
    if (number == SYS_futex_waitv) { /* ours, see alert_park.h: its first argument is a list */
        *state = CL_STATE_AWAITS_LOCK;
        return 1;
    }
#  endif
    if (number == SYS_futex) {
        *state = cl_gil_contains((uintptr_t)first) ? CL_STATE_AWAITS_GIL : CL_STATE_AWAITS_LOCK;
        return 1;
    }
    *state = CL_STATE_BLOCKED;
    *call = number < 0 ? CL_CALL_OTHER : cl_call_class(number, first, second);
    return 1;
}

/* CPU time of a thread, and how long it waited for a CPU, since it began; 0 where that is not kept. */
static void
cl_task_times(uint32_t native_id, uint64_t *cpu_ns, uint64_t *delay_ns)
{
    char text[96];
    *cpu_ns = *delay_ns = 0;
    if (cl_task_read(native_id, CL_TASK_SCHEDSTAT, text, sizeof text)) {
        char *at = text;
        *cpu_ns = strtoull(at, &at, 10);
        *delay_ns = strtoull(at, &at, 10);
    }
}

#else

static int
cl_task_state(uint32_t native_id, uint16_t *state, uint16_t *call)
{
    (void)native_id;
    *state = *call = 0;
    return 0;
}

static void
cl_task_times(uint32_t native_id, uint64_t *cpu_ns, uint64_t *delay_ns)
{
    (void)native_id;
    *cpu_ns = *delay_ns = 0;
}

#endif

#endif
