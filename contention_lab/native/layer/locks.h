/* Locks of the C library other than mutexes, and waits on a word in the kernel: told to the recorder. Each lock is
 * tried first, as it would itself; errno and results are what they are without that.
 */
#ifndef CL_LAYER_LOCKS_H
#define CL_LAYER_LOCKS_H

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "sync.h"

static inline uint32_t
cl_rwlock_writer(const pthread_rwlock_t *lock)
{
    return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

CL_PUBLIC int
pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    CL_LOCK_BODY(pthread_rwlock_rdlock, cl_real.pthread_rwlock_tryrdlock(lock),
                 cl_real.pthread_rwlock_rdlock(lock), CL_NATIVE_RWLOCK, lock, cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_rwlock_timedrdlock, cl_real.pthread_rwlock_tryrdlock(lock),
                 cl_real.pthread_rwlock_timedrdlock(lock, until), CL_NATIVE_RWLOCK, lock,
                 cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    CL_LOCK_BODY(pthread_rwlock_wrlock, cl_real.pthread_rwlock_trywrlock(lock),
                 cl_real.pthread_rwlock_wrlock(lock), CL_NATIVE_RWLOCK, lock, cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_rwlock_timedwrlock, cl_real.pthread_rwlock_trywrlock(lock),
                 cl_real.pthread_rwlock_timedwrlock(lock, until), CL_NATIVE_RWLOCK, lock,
                 cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_spin_lock(pthread_spinlock_t *lock)
{
    CL_LOCK_BODY(pthread_spin_lock, cl_real.pthread_spin_trylock(lock),
                 cl_real.pthread_spin_lock(lock), CL_NATIVE_SPIN, (const void *)(uintptr_t)lock, 0)
}

CL_PUBLIC int
pthread_barrier_wait(pthread_barrier_t *barrier)
{
    const cl_layer_table *table = cl_attached();
    if (CL_REAL(pthread_barrier_wait) == NULL) {
        return ENOSYS;
    }
    uint64_t begun = table == NULL ? 0 : table->native_wait_begin();
    int result = cl_real.pthread_barrier_wait(barrier);
    if (begun != 0) {
        table->native_wait_end(begun, CL_NATIVE_BARRIER, barrier, 0, CL_CALLER, 0);
    }
    return result;
}

/* Semaphores fail with -1 and errno. */
#define CL_SEM_BODY(name, wait) \
    const cl_layer_table *table = cl_attached(); \
    if (CL_REAL(name) == NULL) { \
        errno = ENOSYS; \
        return -1; \
    } \
    if (__builtin_expect(table == NULL, 1)) { \
        return wait; \
    } \
    int error = errno; \
    if (__builtin_expect(cl_real.sem_trywait(semaphore) == 0, 1)) { \
        return 0; \
    } \
    errno = error; \
    uint64_t begun = table->native_wait_begin(); \
    int result = wait; \
    if (begun != 0) { \
        table->native_wait_end(begun, CL_NATIVE_SEM, semaphore, 0, CL_CALLER, result != 0); \
    } \
    return result;

CL_PUBLIC int
sem_wait(sem_t *semaphore)
{
    CL_SEM_BODY(sem_wait, cl_real.sem_wait(semaphore))
}

CL_PUBLIC int
sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    CL_SEM_BODY(sem_timedwait, cl_real.sem_timedwait(semaphore, until))
}

CL_PUBLIC int
sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    CL_SEM_BODY(sem_clockwait, cl_real.sem_clockwait(semaphore, clock, until))
}

/* What has no lock of the C library waits in the kernel by itself: Rust's standard library, and others. Waits
 * count, and that others are woken, as after a release; a call may have up to six arguments, and those that are not there are passed on unused. */
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
    uint64_t begun = table == NULL || number != SYS_futex
                             || (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET)
                         ? 0
                         : table->native_wait_begin();
    long result = cl_real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (begun != 0) {
        int error = errno;
        table->native_wait_end(begun, CL_NATIVE_FUTEX, (const void *)a[0], 0, CL_CALLER, result != 0);
        errno = error;
    }
    else if (table != NULL && number == SYS_futex && (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET)) {
        table->native_released(CL_NATIVE_FUTEX, (const void *)a[0], CL_CALLER);
    }
    return result;
}

#endif
