/* Locks of the C library for readers and writers, spinlocks and barriers: told to the recorder. Each lock is tried
 * first, as it would itself; errno and results are what they are without that.
 */
#ifndef CL_LAYER_LOCKS_H
#define CL_LAYER_LOCKS_H

#include "sync.h"

static inline uint32_t
cl_rwlock_writer(const pthread_rwlock_t *lock)
{
    return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

CL_PUBLIC int
pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    CL_LOCK_BODY(pthread_rwlock_rdlock, 1, cl_real.pthread_rwlock_tryrdlock(lock),
                 cl_real.pthread_rwlock_rdlock(lock), CL_NATIVE_RWLOCK, lock, cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_rwlock_timedrdlock, cl_is_time(CLOCK_REALTIME, until),
                 cl_real.pthread_rwlock_tryrdlock(lock),
                 cl_real.pthread_rwlock_timedrdlock(lock, until), CL_NATIVE_RWLOCK, lock,
                 cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    CL_LOCK_BODY(pthread_rwlock_wrlock, 1, cl_real.pthread_rwlock_trywrlock(lock),
                 cl_real.pthread_rwlock_wrlock(lock), CL_NATIVE_RWLOCK, lock, cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_rwlock_timedwrlock, cl_is_time(CLOCK_REALTIME, until),
                 cl_real.pthread_rwlock_trywrlock(lock),
                 cl_real.pthread_rwlock_timedwrlock(lock, until), CL_NATIVE_RWLOCK, lock,
                 cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_rwlock_clockrdlock, cl_is_time(clock, until),
                 cl_real.pthread_rwlock_tryrdlock(lock),
                 cl_real.pthread_rwlock_clockrdlock(lock, clock, until), CL_NATIVE_RWLOCK, lock,
                 cl_rwlock_writer(lock))
}

CL_PUBLIC int
pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_rwlock_clockwrlock, cl_is_time(clock, until),
                 cl_real.pthread_rwlock_trywrlock(lock),
                 cl_real.pthread_rwlock_clockwrlock(lock, clock, until), CL_NATIVE_RWLOCK, lock,
                 cl_rwlock_writer(lock))
}

/* glibc's words: readers that have it or wait for a writer are counted from bit 3, writers that wait apart;
 * bit 1 is set while a writer has it, or waits for the readers to leave. */
static inline int
cl_rwlock_is_waited_for(const pthread_rwlock_t *lock)
{
    unsigned readers = __atomic_load_n(&lock->__data.__readers, __ATOMIC_RELAXED);
    unsigned writers = __atomic_load_n(&lock->__data.__writers, __ATOMIC_RELAXED);
    return writers != 0 || (cl_rwlock_writer(lock) != 0 ? readers >> 3 != 0 : (readers & 2) != 0);
}

CL_PUBLIC int
pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    const cl_layer_table *table = cl_attached();
    uint64_t at = table != NULL && cl_rwlock_is_waited_for(lock) ? table->native_wait_begin() : 0;
    if (CL_REAL(pthread_rwlock_unlock) == NULL) {
        return ENOSYS;
    }
    int result = cl_real.pthread_rwlock_unlock(lock);
    if (__builtin_expect(at != 0, 0)) {
        table->native_released(at, CL_NATIVE_RWLOCK, lock, CL_CALLER);
    }
    return result;
}

/* How many threads wait for spinlocks, by address: the lock itself does not say it to whoever releases it. Two locks
 * may share a count: then a release is noted that nobody waits for, which costs a record. Relaxed: a release that
 * comes just before a wait may go unnoted. */
#define CL_SPIN_COUNTS 64u
static _Atomic uint32_t cl_spin_waiting[CL_SPIN_COUNTS];

static inline _Atomic uint32_t *
cl_spin_waiters(pthread_spinlock_t *lock)
{
    return &cl_spin_waiting[((uintptr_t)lock / sizeof *lock) % CL_SPIN_COUNTS];
}

static int
cl_spin_wait(pthread_spinlock_t *lock)
{
    atomic_fetch_add_explicit(cl_spin_waiters(lock), 1, memory_order_relaxed);
    int result = cl_real.pthread_spin_lock(lock);
    atomic_fetch_sub_explicit(cl_spin_waiters(lock), 1, memory_order_relaxed);
    return result;
}

CL_PUBLIC int
pthread_spin_lock(pthread_spinlock_t *lock)
{
    CL_LOCK_BODY(pthread_spin_lock, 1, cl_real.pthread_spin_trylock(lock),
                 table == NULL ? cl_real.pthread_spin_lock(lock) : cl_spin_wait(lock), CL_NATIVE_SPIN,
                 (const void *)(uintptr_t)lock, 0)
}

CL_PUBLIC int
pthread_spin_unlock(pthread_spinlock_t *lock)
{
    const cl_layer_table *table = cl_attached();
    if (CL_REAL(pthread_spin_unlock) == NULL) {
        return ENOSYS;
    }
    uint64_t at = table != NULL && atomic_load_explicit(cl_spin_waiters(lock), memory_order_relaxed) != 0
                      ? table->native_wait_begin()
                      : 0;
    int result = cl_real.pthread_spin_unlock(lock);
    if (__builtin_expect(at != 0, 0)) {
        table->native_released(at, CL_NATIVE_SPIN, (const void *)(uintptr_t)lock, CL_CALLER);
    }
    return result;
}

CL_PUBLIC int
pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    if (CL_REAL(pthread_rwlock_tryrdlock) == NULL) {
        return ENOSYS;
    }
    CL_TRY_BODY(pthread_rwlock_tryrdlock, CL_NATIVE_RWLOCK, lock, result == EBUSY)
}

CL_PUBLIC int
pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    if (CL_REAL(pthread_rwlock_trywrlock) == NULL) {
        return ENOSYS;
    }
    CL_TRY_BODY(pthread_rwlock_trywrlock, CL_NATIVE_RWLOCK, lock, result == EBUSY)
}

CL_PUBLIC int
pthread_spin_trylock(pthread_spinlock_t *lock)
{
    if (CL_REAL(pthread_spin_trylock) == NULL) {
        return ENOSYS;
    }
    CL_TRY_BODY(pthread_spin_trylock, CL_NATIVE_SPIN, lock, result == EBUSY)
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

#endif
