/* The locks, conditions and threads of C11 (<threads.h>): in glibc they are those of POSIX under other names, which
 * it calls within itself, so that nothing of them is seen by who stands before pthread_mutex_lock(). They are told
 * to the recorder as what they are underneath.
 */
#ifndef CL_LAYER_C11_H
#define CL_LAYER_C11_H

#include <threads.h>

#include "program.h"
#include "sync.h"

/* Libraries bring functions of these names with other results and other locks: those are passed on only. */
static int cl_c11_is_glibcs;

static int
cl_c11_is_in_glibc(const void *function)
{
    Dl_info found;
    if (function == NULL || dladdr(function, &found) == 0 || found.dli_fname == NULL) {
        return 0;
    }
    const char *name = strrchr(found.dli_fname, '/');
    name = name == NULL ? found.dli_fname : name + 1;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2", 6) == 0
           || strncmp(name, "libpthread", 10) == 0;
}

static void
cl_c11_begin(void)
{
    void *const names[] = {
        *(void **)(void *)&cl_real.mtx_lock, *(void **)(void *)&cl_real.mtx_timedlock,
        *(void **)(void *)&cl_real.mtx_trylock, *(void **)(void *)&cl_real.mtx_unlock,
        *(void **)(void *)&cl_real.cnd_wait, *(void **)(void *)&cl_real.cnd_timedwait,
        *(void **)(void *)&cl_real.cnd_signal, *(void **)(void *)&cl_real.cnd_broadcast,
        *(void **)(void *)&cl_real.thrd_join};
    cl_c11_is_glibcs = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cl_c11_is_glibcs &= cl_c11_is_in_glibc(names[i]);
    }
}

static inline const cl_layer_table *
cl_c11_attached(void)
{
    return cl_c11_is_glibcs ? cl_attached() : NULL;
}

#define CL_C11_MUTEX(mutex) ((const pthread_mutex_t *)(const void *)(mutex))

/* As CL_LOCK_BODY, with the results of C11. */
#define CL_C11_LOCK_BODY(name, can_try, wait) \
    const cl_layer_table *table = cl_c11_attached(); \
    if (CL_REAL(name) == NULL) { \
        return thrd_error; \
    } \
    if (__builtin_expect(table == NULL, 1) || !(can_try)) { \
        return wait; \
    } \
    int result = cl_real.mtx_trylock(mutex); \
    if (__builtin_expect(result != thrd_busy, 1)) { \
        CL_TAKEN(CL_NATIVE_MUTEX, mutex) \
        return result; \
    } \
    uint32_t holder = cl_mutex_owner(CL_C11_MUTEX(mutex)); \
    uint64_t begun = table->native_wait_begin(); \
    result = wait; \
    if (begun != 0) { \
        table->native_wait_end(begun, CL_NATIVE_MUTEX, mutex, holder, CL_CALLER, result != thrd_success); \
    } \
    return result;

CL_PUBLIC int
mtx_lock(mtx_t *mutex)
{
    CL_C11_LOCK_BODY(mtx_lock, 1, cl_real.mtx_lock(mutex))
}

CL_PUBLIC int
mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    CL_C11_LOCK_BODY(mtx_timedlock, cl_is_time(CLOCK_REALTIME, until), cl_real.mtx_timedlock(mutex, until))
}

CL_PUBLIC int
mtx_trylock(mtx_t *mutex)
{
    if (CL_REAL(mtx_trylock) == NULL) {
        return thrd_error;
    }
    const cl_layer_table *table = cl_c11_attached();
    int result = cl_real.mtx_trylock(mutex);
    if (__builtin_expect(table != NULL && table->counts, 0) && (result == thrd_success || result == thrd_busy)) {
        cl_tally(CL_NATIVE_MUTEX, mutex, CL_CALLER, result != thrd_success);
    }
    return result;
}

CL_PUBLIC int
mtx_unlock(mtx_t *mutex)
{
    const cl_layer_table *table = cl_c11_attached();
    if (CL_REAL(mtx_unlock) == NULL) {
        return thrd_error;
    }
    uint64_t at = table != NULL && cl_mutex_is_waited_for(CL_C11_MUTEX(mutex)) ? table->native_wait_begin() : 0;
    int result = cl_real.mtx_unlock(mutex);
    /* From here on the mutex may be gone: only its address is used. */
    if (__builtin_expect(at != 0, 0)) {
        table->native_released(at, CL_NATIVE_MUTEX, mutex, CL_CALLER);
    }
    return result;
}

CL_PUBLIC int
cnd_wait(cnd_t *cond, mtx_t *mutex)
{
    CL_COND_BODY(cnd_wait, cl_c11_attached(), thrd_error, cl_real.cnd_wait(cond, mutex))
}

CL_PUBLIC int
cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    CL_COND_BODY(cnd_timedwait, cl_c11_attached(), thrd_error, cl_real.cnd_timedwait(cond, mutex, until))
}

CL_PUBLIC int
cnd_signal(cnd_t *cond)
{
    CL_SIGNAL_BODY(cnd_signal, cl_c11_attached(), thrd_error)
}

CL_PUBLIC int
cnd_broadcast(cnd_t *cond)
{
    CL_SIGNAL_BODY(cnd_broadcast, cl_c11_attached(), thrd_error)
}

/* A thread that has ended already is not waited for. */
CL_PUBLIC int
thrd_join(thrd_t thread, int *value)
{
    const cl_layer_table *table = cl_c11_attached();
    void *ended = NULL;
    if (CL_REAL(thrd_join) == NULL) {
        return thrd_error;
    }
    if (table != NULL && cl_real.pthread_tryjoin_np(thread, &ended) == 0) {
        if (value != NULL) {
            *value = (int)(intptr_t)ended;
        }
        return thrd_success;
    }
    uint64_t begun = table == NULL ? 0 : table->native_wait_begin();
    int result = cl_real.thrd_join(thread, value);
    if (begun != 0) {
        table->native_wait_end(begun, CL_NATIVE_THREAD, (const void *)(uintptr_t)thread, 0, CL_CALLER,
                               result != thrd_success);
    }
    return result;
}

CL_PUBLIC int
thrd_create(thrd_t *thread, thrd_start_t run, void *argument)
{
    if (CL_REAL(thrd_create) == NULL) {
        return thrd_error;
    }
    if (__builtin_expect(cl_program.owned.fd >= 0, 0)) {
        cl_program_start();
    }
    return cl_real.thrd_create(thread, run, argument);
}

CL_PUBLIC void
thrd_yield(void)
{
    const cl_layer_table *table = cl_attached();
    uint64_t begun = table == NULL ? 0 : table->native_wait_begin();
    if (CL_REAL(thrd_yield) != NULL) {
        cl_real.thrd_yield();
    }
    if (begun != 0) {
        table->native_yielded(begun, CL_CALLER);
    }
}

CL_PUBLIC int
thrd_sleep(const struct timespec *time, struct timespec *rest)
{
    const cl_layer_table *table = cl_attached();
    uint64_t begun = table == NULL ? 0 : table->world_begin(CL_ON_SLEEP);
    int result = CL_REAL(thrd_sleep) == NULL ? -2 : cl_real.thrd_sleep(time, rest);
    if (__builtin_expect(begun != 0, 0)) {
        table->world_end(begun, CL_ON_SLEEP);
    }
    return result;
}

#endif
