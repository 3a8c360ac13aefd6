/* Waits on a word in the kernel, and threads that let others run: what code does that has locks of its own.
 */
#ifndef CL_LAYER_KERNEL_WAITS_H
#define CL_LAYER_KERNEL_WAITS_H

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "sync.h"

/* What has no lock of the C library waits in the kernel by itself: Rust's standard library, and others. Waits
 * count, and that others are woken, as after a release; a call may have up to six arguments, and those that are
 * not there are passed on unused. */
CL_PUBLIC long syscall(long number, ...);

CL_PUBLIC long
syscall(long number, ...)
{
    va_list more;
    long a[6];
    va_start(more, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(more, long);
    }
    va_end(more);
    const cl_layer_table *table = cl_attached();
    if (CL_REAL(syscall) == NULL) {
        errno = ENOSYS;
        return -1;
    }
    int command = (int)a[1] & FUTEX_CMD_MASK;
    int waits = number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
    int wakes = number == SYS_futex && (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET);
    uint64_t begun = table != NULL && (waits || wakes) ? table->native_wait_begin() : 0;
    long result = cl_real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (begun != 0 && waits) {
        int error = errno;
        table->native_wait_end(begun, CL_NATIVE_FUTEX, (const void *)a[0], 0, CL_CALLER, result != 0);
        errno = error;
    }
    else if (begun != 0) {
        table->native_released(begun, CL_NATIVE_FUTEX, (const void *)a[0], CL_CALLER);
    }
    return result;
}

/* A lock that spins calls it between its tries: free-threaded Python's, OpenBLAS's, and others. */
CL_PUBLIC int
sched_yield(void)
{
    const cl_layer_table *table = cl_attached();
    if (CL_REAL(sched_yield) == NULL) {
        errno = ENOSYS;
        return -1;
    }
    uint64_t begun = table == NULL ? 0 : table->native_wait_begin();
    int result = cl_real.sched_yield();
    if (begun != 0) {
        table->native_yielded(begun, CL_CALLER);
    }
    return result;
}

#endif
