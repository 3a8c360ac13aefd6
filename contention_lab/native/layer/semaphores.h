/* Semaphores: waits for them, and posts to those that somebody waits for.
 */
#ifndef CL_LAYER_SEMAPHORES_H
#define CL_LAYER_SEMAPHORES_H

#include "sync.h"

/* glibc's word: the value in the lower half, the number of waiters in the upper one. */
static inline int
cl_sem_is_waited_for(const sem_t *semaphore)
{
#if __SIZEOF_POINTER__ == 8
    return __atomic_load_n((const uint64_t *)(const void *)semaphore, __ATOMIC_RELAXED) >> 32 != 0;
#else
    (void)semaphore;
    return 0;
#endif
}

/* Semaphores fail with -1 and errno. To wait for one is a point at which a thread may be cancelled also if it is
 * free; a try is none. */
#define CL_SEM_BODY(name, can_try, wait) \
    const cl_layer_table *table = cl_attached(); \
    if (CL_REAL(name) == NULL) { \
        errno = ENOSYS; \
        return -1; \
    } \
    if (__builtin_expect(table == NULL, 1) || !(can_try)) { \
        return wait; \
    } \
    pthread_testcancel(); \
    int error = errno; \
    int result = cl_real.sem_trywait(semaphore); \
    if (__builtin_expect(result == 0, 1)) { \
        CL_TAKEN(CL_NATIVE_SEM, semaphore) \
        return 0; \
    } \
    errno = error; \
    uint64_t begun = table->native_wait_begin(); \
    result = wait; \
    if (result == 0 && table->counts) { \
        cl_tally_took(semaphore, CL_CALLER); \
    } \
    if (begun != 0) { \
        table->native_wait_end(begun, CL_NATIVE_SEM, semaphore, 0, CL_CALLER, result != 0); \
    } \
    return result;

CL_PUBLIC int
sem_wait(sem_t *semaphore)
{
    CL_SEM_BODY(sem_wait, 1, cl_real.sem_wait(semaphore))
}

CL_PUBLIC int
sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    CL_SEM_BODY(sem_timedwait, cl_is_time(CLOCK_REALTIME, until), cl_real.sem_timedwait(semaphore, until))
}

CL_PUBLIC int
sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    CL_SEM_BODY(sem_clockwait, cl_is_time(clock, until), cl_real.sem_clockwait(semaphore, clock, until))
}

CL_PUBLIC int
sem_trywait(sem_t *semaphore)
{
    if (CL_REAL(sem_trywait) == NULL) {
        errno = ENOSYS;
        return -1;
    }
    CL_TRY_BODY(sem_trywait, CL_NATIVE_SEM, semaphore, errno == EAGAIN)
}

/* The semaphore may be gone afterwards. */
CL_PUBLIC int
sem_post(sem_t *semaphore)
{
    const cl_layer_table *table = cl_attached();
    if (CL_REAL(sem_post) == NULL) {
        errno = ENOSYS;
        return -1;
    }
    uint64_t at = table != NULL && cl_sem_is_waited_for(semaphore) ? table->native_wait_begin() : 0;
    if (table != NULL && table->counts && cl_tally_signals(semaphore, CL_CALLER)) {
        table->native_signals(semaphore); /* before anybody who waits can go on */
    }
    int result = cl_real.sem_post(semaphore);
    if (__builtin_expect(at != 0, 0)) {
        table->native_released(at, CL_NATIVE_SEM, semaphore, CL_CALLER);
    }
    return result;
}

#endif
