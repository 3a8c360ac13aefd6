/* Waits for the end of another thread.
 *
 * They are points at which a thread may be cancelled; it then leaves from within, and such a wait is not recorded.
 */
#ifndef CL_LAYER_JOINS_H
#define CL_LAYER_JOINS_H

#include "sync.h"

/* The thread's own address stands for it, as long as it is there. */
#define CL_JOIN_BODY(name, can_try, wait) \
    const cl_layer_table *table = cl_attached(); \
    if (CL_REAL(name) == NULL) { \
        return ENOSYS; \
    } \
    if (__builtin_expect(table == NULL, 1) || !(can_try)) { \
        return wait; \
    } \
    int result = cl_real.pthread_tryjoin_np(thread, value); \
    if (result != EBUSY) { \
        return result; \
    } \
    uint64_t begun = table->native_wait_begin(); \
    result = wait; \
    if (begun != 0) { \
        table->native_wait_end(begun, CL_NATIVE_THREAD, (const void *)(uintptr_t)thread, 0, CL_CALLER, \
                               result != 0); \
    } \
    return result;

CL_PUBLIC int
pthread_join(pthread_t thread, void **value)
{
    CL_JOIN_BODY(pthread_join, 1, cl_real.pthread_join(thread, value))
}

CL_PUBLIC int
pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    CL_JOIN_BODY(pthread_timedjoin_np, until != NULL && cl_is_time(CLOCK_REALTIME, until),
                 cl_real.pthread_timedjoin_np(thread, value, until))
}

CL_PUBLIC int
pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *until)
{
    CL_JOIN_BODY(pthread_clockjoin_np, until != NULL && cl_is_time(clock, until),
                 cl_real.pthread_clockjoin_np(thread, value, clock, until))
}

#endif
