/* The recorder's side of the layer: finds it in the process, and hands it the functions it is to call.
 *
 * Without the layer (not preloaded, another system) nothing here does anything. Only a recording is attached:
 * before and after, the layer passes all calls on.
 */
#ifndef CL_LAYER_LINK_H
#define CL_LAYER_LINK_H

#include "layer/table.h"
#include "native_events.h"

#if defined(__linux__)

#  include <dlfcn.h>

static cl_layer_table cl_layer_functions = {
    .abi = CL_LAYER_ABI, .gil_arrived = cl_gil_arrived, .gil_passed_on = cl_gil_passed_on,
    .gil_wait = cl_gil_wait, .gil_woke = cl_gil_woke,
    .gil_taken = cl_gil_taken, .gil_dropped = cl_gil_dropped, .gil_settled = cl_gil_settled,
    .native_wait_begin = cl_native_wait_begin, .native_wait_end = cl_native_wait_end,
    .native_released = cl_native_released, .native_yielded = cl_native_yielded,
    .world_begin = cl_blocking_begin, .world_end = cl_blocking_end};

/* NULL if there is none that speaks our language; `other` says whether there is another one. */
static cl_layer_attach_function
cl_layer_find(int *other)
{
    cl_layer_attach_function attach = NULL;
    *(void **)(void *)&attach = dlsym(RTLD_DEFAULT, CL_LAYER_ATTACH);
    const uint32_t *abi = dlsym(RTLD_DEFAULT, CL_LAYER_ABI_NAME);
    *other = attach != NULL && (abi == NULL || *abi != CL_LAYER_ABI);
    return *other ? NULL : attach;
}

static void
cl_layer_attach(void)
{
    int other;
    cl_layer_attach_function attach = cl_layer_find(&other);
    memset(&cl_gil, 0, sizeof cl_gil);
    if (attach != NULL) {
        int locked;
        const void *holder;
        cl_layer_table *table = &cl_layer_functions;
        if (cl_gil_find(&table->gil_cond, &table->gil_mutex, &table->gil_switched)
            && (!cl_gil_read(&locked, &holder) || !locked || holder != PyThreadState_Get())) {
            table->gil_cond = table->gil_mutex = table->gil_switched = NULL; /* not what we took it for */
        }
        cl_gil.is_seen = table->gil_cond != NULL;
        cl_gil_range(&table->gil_start, &table->gil_end);
        attach(table);
    }
}

static void
cl_layer_detach(void)
{
    int other;
    cl_layer_attach_function attach = cl_layer_find(&other);
    if (attach != NULL) {
        attach(NULL);
    }
}

/* Whether it is there, whether it sees the GIL, and whether one is there that is of another build. */
static int
cl_layer_is_there(int *sees_gil, int *other)
{
    const void *cond, *mutex, *switched;
    int there = cl_layer_find(other) != NULL;
    *sees_gil = there && cl_gil_find(&cond, &mutex, &switched);
    return there;
}

#else

static void
cl_layer_attach(void)
{
}

static void
cl_layer_detach(void)
{
}

static int
cl_layer_is_there(int *sees_gil, int *other)
{
    *sees_gil = *other = 0;
    return 0;
}

#endif

#endif
