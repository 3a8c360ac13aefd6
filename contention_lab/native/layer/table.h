/* What the layer and the recorder know of each other: one table of functions.
 *
 * The layer is a shared object of its own, loaded before the program and before Python. It does nothing until
 * the recorder (the extension module, whenever it is imported) finds CL_LAYER_ATTACH in it and hands it a
 * table. All functions of the table may be called by any thread at any time, keep errno, and cost little where
 * nothing is being recorded. The table lives as long as the process.
 */
#ifndef CL_LAYER_TABLE_H
#define CL_LAYER_TABLE_H

#include <stdint.h>

#include "world_calls.h"

enum {
    CL_NATIVE_MUTEX = 1, CL_NATIVE_RWLOCK, CL_NATIVE_COND, CL_NATIVE_SEM, CL_NATIVE_SPIN, CL_NATIVE_BARRIER,
    CL_NATIVE_FUTEX, CL_NATIVE_THREAD, CL_NATIVE_YIELD
};

#define CL_LAYER_ATTACH "contention_lab_layer_attach"
#define CL_LAYER_ABI_NAME "contention_lab_layer_abi"
#define CL_LAYER_VERSION 3u /* to be raised when a field changes its place or its meaning */

typedef struct {
    uint32_t abi; /* CL_LAYER_ABI; stays the first field, of this type */
    /* The parts of the interpreter's lock, by address, NULL where there is none. The functions
     * are called with its mutex held, but for gil_settled(): that is called by the thread that has just
     * taken the GIL, when it has let go of the mutex. */
    const void *gil_cond, *gil_mutex, *gil_switched;
    void (*gil_arrived)(void);       /* has found even its mutex taken (and so calls without it) */
    void (*gil_wait)(void);          /* is about to wait for it */
    void (*gil_woke)(int timed_out); /* is back from that, with it or without */
    void (*gil_taken)(void);
    void (*gil_dropped)(void);
    void (*gil_passed_on)(int over); /* waits until somebody has taken it; with another mutex */
    void (*gil_settled)(void);
    /* Where the parts of the GIL lie: of its mutexes and conditions nothing else is said. */
    uintptr_t gil_start, gil_end;
    /* A lock was not to be had at once: 0 if that is of no interest, else what to give to native_wait_end(). */
    uint64_t (*native_wait_begin)(void);
    void (*native_wait_end)(uint64_t begun, uint32_t kind, const void *lock, uint32_t holder,
                            const void *caller, int gave_up);
    /* A lock that others wait for has been released, a condition that they wait for signalled: `at` is a moment
     * just before, as of native_wait_begin(), since whoever is let in may take the core of who lets him in. */
    void (*native_released)(uint64_t at, uint32_t kind, const void *lock, const void *caller);
    /* The thread has let others run, as spinlocks of libraries do: since when, as of native_wait_begin(). */
    void (*native_yielded)(uint64_t begun, const void *caller);
    /* Whether the layer is to count what is taken at once (tally.h), and tell of semaphores that turn out to be
     * signals. */
    uint64_t counts;
    void (*native_signals)(const void *semaphore);
    /* A call that may block begins: 0 if that is of no interest, else what to give to world_end(). */
    uint64_t (*world_begin)(uint32_t call);
    void (*world_end)(uint64_t begun, uint32_t call);
} cl_layer_table;

/* The two may be of different builds: an installation renewed while a program runs, a preload that was inherited.
 * So each says the version and the size of its table, and they connect only if these are the same. */
#define CL_LAYER_ABI (CL_LAYER_VERSION << 16 | (uint32_t)sizeof(cl_layer_table))

/* Connects, or disconnects (NULL). 0, or -1 if the recorder's table is not the layer's. */
typedef int (*cl_layer_attach_function)(const cl_layer_table *table);

#endif
