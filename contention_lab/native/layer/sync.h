/* Mutexes and conditions: those of the interpreter's lock, and waits for all others.
 *
 * Every thread that wants the GIL locks its mutex, waits on its condition while somebody else has it, signals
 * "switched" when it has it, and unlocks. Whoever gives it up locks the mutex, signals the condition, unlocks.
 * So the order of these calls says exactly who has it from when to when.
 *
 * Others are tried first: only where that fails is there a wait. glibc's mutexes say who has them, and whether
 * somebody waits when they are released.
 */
#ifndef CL_LAYER_SYNC_H
#define CL_LAYER_SYNC_H

#include "attached.h"
#include "real.h"
#include "tally.h"

#define CL_CALLER __builtin_return_address(0)

static inline int
cl_is_gil(const cl_layer_table *table, const void *part)
{
    return (uintptr_t)part - table->gil_start < table->gil_end - table->gil_start;
}

static inline uint32_t
cl_mutex_owner(const pthread_mutex_t *mutex)
{
    return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

/* Of the kinds whose word says 0 free, 1 taken, 2 waited for. */
static inline int
cl_mutex_is_waited_for(const pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) > 1
           && (mutex->__data.__kind & 0x7f) <= PTHREAD_MUTEX_ADAPTIVE_NP;
}

/* Whether the C library takes that for a time: what it refuses, it refuses also if the lock is free. */
static inline int
cl_is_time(clockid_t clock, const struct timespec *until)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && (unsigned long)until->tv_nsec < 1000000000u;
}

/* A lock has been taken at once, if `result` is 0; a try has been in vain, if it is not. */
#define CL_TAKEN(kind, lock) \
    if (__builtin_expect(table->counts, 0) && result == 0) { \
        cl_tally(kind, lock, CL_CALLER, 0); \
    }
#define CL_TRY_BODY(name, kind, lock, is_busy) \
    const cl_layer_table *table = cl_attached(); \
    int result = cl_real.name(lock); \
    if (__builtin_expect(table != NULL && table->counts, 0) && (result == 0 || (is_busy))) { \
        cl_tally(kind, (const void *)(uintptr_t)lock, CL_CALLER, result != 0); \
    } \
    return result;

/* `try` and then `wait`, between begin and end of a wait; only the latter if it cannot be tried first. */
#define CL_LOCK_BODY(name, can_try, try, wait, kind, lock, owner) \
    const cl_layer_table *table = cl_attached(); \
    if (CL_REAL(name) == NULL) { \
        return ENOSYS; \
    } \
    if (__builtin_expect(table == NULL, 1) || !(can_try)) { \
        return wait; \
    } \
    int result = try; \
    if (__builtin_expect(result != EBUSY, 1)) { \
        CL_TAKEN(kind, lock) \
        return result; \
    } \
    uint32_t holder = owner; \
    uint64_t begun = table->native_wait_begin(); \
    result = wait; \
    if (begun != 0) { \
        table->native_wait_end(begun, kind, lock, holder, CL_CALLER, result != 0); \
    } \
    return result;

/* What a free mutex does not need is out of line: so the way through keeps one register, and writes little ahead
 * of the atomic instruction, which waits for all that has been written. */
static __attribute__((noinline)) int
cl_mutex_wait(pthread_mutex_t *mutex, const void *caller)
{
    const cl_layer_table *table = cl_attached();
    uint64_t begun = 0;
    if (table != NULL && table->gil_mutex == mutex) {
        table->gil_arrived();
    }
    else if (table != NULL && !cl_is_gil(table, mutex)) {
        uint32_t holder = cl_mutex_owner(mutex);
        begun = table->native_wait_begin();
        if (begun != 0) {
            int result = cl_real.pthread_mutex_lock(mutex);
            table->native_wait_end(begun, CL_NATIVE_MUTEX, mutex, holder, caller, result != 0);
            return result;
        }
    }
    return CL_REAL(pthread_mutex_lock) == NULL ? __pthread_mutex_lock(mutex)
                                               : cl_real.pthread_mutex_lock(mutex);
}

static __attribute__((noinline)) int
cl_mutex_taken(pthread_mutex_t *mutex, const void *caller)
{
    cl_tally(CL_NATIVE_MUTEX, mutex, caller, 0);
    return 0;
}

CL_PUBLIC int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (__builtin_expect(cl_attached() == NULL || CL_REAL(pthread_mutex_trylock) == NULL, 0)) {
        return CL_REAL(pthread_mutex_lock) == NULL ? __pthread_mutex_lock(mutex)
                                                   : cl_real.pthread_mutex_lock(mutex);
    }
    int result = cl_real.pthread_mutex_trylock(mutex);
    if (__builtin_expect(result == EBUSY, 0)) {
        return cl_mutex_wait(mutex, CL_CALLER);
    }
    const cl_layer_table *table = cl_attached();
    if (__builtin_expect(table != NULL && table->counts, 0) && result == 0) {
        return cl_mutex_taken(mutex, CL_CALLER);
    }
    return result;
}

CL_PUBLIC int
pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (CL_REAL(pthread_mutex_trylock) == NULL) {
        return __pthread_mutex_trylock(mutex);
    }
    CL_TRY_BODY(pthread_mutex_trylock, CL_NATIVE_MUTEX, mutex, result == EBUSY)
}

CL_PUBLIC int
pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_mutex_timedlock, 1, cl_real.pthread_mutex_trylock(mutex),
                 cl_real.pthread_mutex_timedlock(mutex, until), CL_NATIVE_MUTEX, mutex,
                 cl_mutex_owner(mutex))
}

CL_PUBLIC int
pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    CL_LOCK_BODY(pthread_mutex_clocklock, cl_is_time(clock, until), cl_real.pthread_mutex_trylock(mutex),
                 cl_real.pthread_mutex_clocklock(mutex, clock, until), CL_NATIVE_MUTEX, mutex,
                 cl_mutex_owner(mutex))
}

/* A mutex that others wait for, or that of the GIL. */
static __attribute__((noinline)) int
cl_mutex_release(const cl_layer_table *table, pthread_mutex_t *mutex, const void *caller)
{
    uint64_t at = !cl_is_gil(table, mutex) ? table->native_wait_begin() : 0;
    int result = CL_REAL(pthread_mutex_unlock) == NULL ? __pthread_mutex_unlock(mutex)
                                                       : cl_real.pthread_mutex_unlock(mutex);
    /* From here on the mutex may be gone: only its address is used. */
    if (table->gil_mutex == mutex) {
        table->gil_settled();
    }
    else if (at != 0) {
        table->native_released(at, CL_NATIVE_MUTEX, mutex, caller);
    }
    return result;
}

CL_PUBLIC int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    const cl_layer_table *table = cl_attached();
    if (table != NULL && __builtin_expect(table->gil_mutex == mutex || cl_mutex_is_waited_for(mutex), 0)) {
        return cl_mutex_release(table, mutex, CL_CALLER);
    }
    return CL_REAL(pthread_mutex_unlock) == NULL ? __pthread_mutex_unlock(mutex)
                                                 : cl_real.pthread_mutex_unlock(mutex);
}

/* A wait on a condition that is none of the GIL's. `missing`: what to return where there is no such function. */
#define CL_COND_BODY(name, attached, missing, wait) \
    const cl_layer_table *table = attached; \
    if (CL_REAL(name) == NULL) { \
        return missing; \
    } \
    uint64_t begun = table == NULL || cl_is_gil(table, cond) ? 0 : table->native_wait_begin(); \
    int result = wait; \
    if (begun != 0) { \
        table->native_wait_end(begun, CL_NATIVE_COND, cond, 0, CL_CALLER, result != 0); \
    } \
    return result;

CL_PUBLIC int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    const cl_layer_table *gil = cl_attached();
    if (gil != NULL && gil->gil_switched == cond && CL_REAL(pthread_cond_wait) != NULL) {
        gil->gil_passed_on(0);
        int passed = cl_real.pthread_cond_wait(cond, mutex);
        gil->gil_passed_on(1);
        return passed;
    }
    CL_COND_BODY(pthread_cond_wait, cl_attached(), ENOSYS, cl_real.pthread_cond_wait(cond, mutex))
}

CL_PUBLIC int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    const cl_layer_table *gil = cl_attached();
    if (gil != NULL && gil->gil_cond == cond && CL_REAL(pthread_cond_timedwait) != NULL) {
        gil->gil_wait();
        int woken = cl_real.pthread_cond_timedwait(cond, mutex, until);
        gil->gil_woke(woken == ETIMEDOUT);
        return woken;
    }
    CL_COND_BODY(pthread_cond_timedwait, cl_attached(), ENOSYS,
                 cl_real.pthread_cond_timedwait(cond, mutex, until))
}

CL_PUBLIC int
pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                       const struct timespec *until)
{
    CL_COND_BODY(pthread_cond_clockwait, cl_attached(), ENOSYS,
                 cl_real.pthread_cond_clockwait(cond, mutex, clock, until))
}

/* The upper bits of that word are the number of waiters. */
static inline int
cl_cond_is_waited_for(const void *cond)
{
    return __atomic_load_n(&((const pthread_cond_t *)cond)->__data.__wrefs, __ATOMIC_RELAXED) >= 8;
}

/* A signal to one or to all. The condition may be gone afterwards. */
#define CL_SIGNAL_BODY(name, attached, missing) \
    const cl_layer_table *table = attached; \
    uint64_t at = 0; \
    if (CL_REAL(name) == NULL) { \
        return missing; \
    } \
    if (table != NULL && table->gil_cond == cond) { \
        table->gil_dropped(); \
    } \
    else if (table != NULL && table->gil_switched == cond) { \
        table->gil_taken(); \
    } \
    else if (table != NULL && cl_cond_is_waited_for(cond) && !cl_is_gil(table, cond)) { \
        at = table->native_wait_begin(); \
    } \
    int result = cl_real.name(cond); \
    if (__builtin_expect(at != 0, 0)) { \
        table->native_released(at, CL_NATIVE_COND, cond, CL_CALLER); \
    } \
    return result;

CL_PUBLIC int
pthread_cond_signal(pthread_cond_t *cond)
{
    CL_SIGNAL_BODY(pthread_cond_signal, cl_attached(), ENOSYS)
}

CL_PUBLIC int
pthread_cond_broadcast(pthread_cond_t *cond)
{
    CL_SIGNAL_BODY(pthread_cond_broadcast, cl_attached(), ENOSYS)
}

#endif
