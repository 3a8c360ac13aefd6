/* Mutexes and conditions: those of the interpreter's lock are told to the recorder, all others passed on.
 *
 * Every thread that wants the GIL locks its mutex, waits on its condition while somebody else has it, signals
 * "switched" when it has it, and unlocks. Whoever gives it up locks the mutex, signals the condition, unlocks.
 * So the order of these calls says exactly who has it from when to when.
 */
#ifndef CL_LAYER_SYNC_H
#define CL_LAYER_SYNC_H

#include "attached.h"
#include "real.h"

CL_PUBLIC int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    const cl_layer_table *table = cl_attached();
    if (__builtin_expect(table != NULL && table->gil_mutex == mutex, 0)
        && CL_REAL(pthread_mutex_trylock) != NULL) {
        if (cl_real.pthread_mutex_trylock(mutex) == 0) {
            return 0;
        }
        table->gil_arrived();
    }
    return CL_REAL(pthread_mutex_lock) == NULL ? __pthread_mutex_lock(mutex)
                                               : cl_real.pthread_mutex_lock(mutex);
}

CL_PUBLIC int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    const cl_layer_table *table = cl_attached();
    int result = CL_REAL(pthread_mutex_unlock) == NULL ? __pthread_mutex_unlock(mutex)
                                                       : cl_real.pthread_mutex_unlock(mutex);
    if (__builtin_expect(table != NULL && table->gil_mutex == mutex, 0)) {
        table->gil_settled();
    }
    return result;
}

CL_PUBLIC int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    const cl_layer_table *table = cl_attached();
    int is_gil = table != NULL && table->gil_switched == cond;
    if (is_gil) {
        table->gil_passed_on(0);
    }
    int result = CL_REAL(pthread_cond_wait) == NULL ? ENOSYS : cl_real.pthread_cond_wait(cond, mutex);
    if (is_gil) {
        table->gil_passed_on(1);
    }
    return result;
}

CL_PUBLIC int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    const cl_layer_table *table = cl_attached();
    int is_gil = table != NULL && table->gil_cond == cond;
    if (is_gil) {
        table->gil_wait();
    }
    int result = CL_REAL(pthread_cond_timedwait) == NULL
                     ? ENOSYS
                     : cl_real.pthread_cond_timedwait(cond, mutex, until);
    if (is_gil) {
        table->gil_woke(result == ETIMEDOUT);
    }
    return result;
}

CL_PUBLIC int
pthread_cond_signal(pthread_cond_t *cond)
{
    const cl_layer_table *table = cl_attached();
    if (table != NULL) {
        if (table->gil_cond == cond) {
            table->gil_dropped();
        }
        else if (table->gil_switched == cond) {
            table->gil_taken();
        }
    }
    return CL_REAL(pthread_cond_signal) == NULL ? ENOSYS : cl_real.pthread_cond_signal(cond);
}

#endif
