/* How often each thread takes each lock at once, and how often it tries in vain: counted in a table of the thread's
 * own, so that a free lock costs two or three nanoseconds more and no cache line is shared.
 *
 * Tables are given out when a thread takes its first lock, and taken back by the writer once the thread is gone.
 * A thread writes only its own table and the writer only reads it, but for the words `seen`. A thread that finds no
 * table, and a lock that finds no entry, is not counted. */
#ifndef CL_LAYER_TALLY_H
#define CL_LAYER_TALLY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../clock.h"
#include "table.h"

#define CL_TALLY_THREADS 512u
#define CL_TALLY_LOCKS 256u /* of a thread: a power of two */
#define CL_TALLY_PROBES 8u

typedef struct {
    _Atomic uintptr_t lock; /* stored last, with release: the rest is there */
    uintptr_t caller;       /* that first took it in this thread */
    uint16_t kind, was_taken, is_signal, unused;
    _Atomic uint64_t acquires, failed; /* relaxed: only this thread adds */
    uint64_t seen_acquires, seen_failed; /* by the writer */
    uintptr_t last_caller;  /* that took it at once last; read by this thread only */
} cl_tally_entry; /* a cache line */

typedef struct {
    _Atomic uint32_t owner; /* gettid; 0: free */
    uint32_t unused[13];
    uint64_t since;
    cl_tally_entry entry[CL_TALLY_LOCKS];
} cl_tally_table;

static struct {
    cl_tally_table *table;  /* NULL: nothing is counted */
    _Atomic uint32_t used;  /* tables from there on have never been */
    _Atomic uint32_t refused; /* threads that found none */
} cl_tallies;

static __thread struct {
    cl_tally_table *table;
    int refused; /* it is a thread of ours, or there was none left */
} cl_tally_mine __attribute__((tls_model("initial-exec")));

static void
cl_tallies_begin(void)
{
    /* Pages that nobody writes to are not there. */
    void *room = mmap(NULL, CL_TALLY_THREADS * sizeof(cl_tally_table), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cl_tallies.table = room == MAP_FAILED ? NULL : room;
}

static __attribute__((noinline, cold)) cl_tally_table *
cl_tally_claim(void)
{
    uint32_t me = (uint32_t)syscall(SYS_gettid);
    for (uint32_t i = 0; i < CL_TALLY_THREADS && cl_tallies.table != NULL && !cl_tally_mine.refused; i++) {
        cl_tally_table *table = &cl_tallies.table[i];
        uint32_t nobody = 0;
        /* acquire: the writer has emptied it */
        if (atomic_load_explicit(&table->owner, memory_order_relaxed) == 0
            && atomic_compare_exchange_strong_explicit(&table->owner, &nobody, me, memory_order_acquire,
                                                       memory_order_relaxed)) {
            uint32_t used = atomic_load_explicit(&cl_tallies.used, memory_order_relaxed);
            while (used <= i
                   && !atomic_compare_exchange_weak_explicit(&cl_tallies.used, &used, i + 1,
                                                             memory_order_relaxed, memory_order_relaxed)) {
            }
            table->since = cl_now();
            return cl_tally_mine.table = table;
        }
    }
    if (!cl_tally_mine.refused && cl_tallies.table != NULL) {
        atomic_fetch_add_explicit(&cl_tallies.refused, 1, memory_order_relaxed);
    }
    cl_tally_mine.refused = 1;
    return NULL;
}

static inline uint32_t
cl_tally_place(const void *lock)
{
    uint64_t mixed = (uint64_t)(uintptr_t)lock * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 56) % CL_TALLY_LOCKS;
}

/* The thread's entry for a lock, made if there is none; NULL if there is no room. */
static __attribute__((noinline)) cl_tally_entry *
cl_tally_find(uint32_t kind, const void *lock, const void *caller)
{
    cl_tally_table *table = cl_tally_mine.table;
    if (cl_tally_mine.refused || (table == NULL && (table = cl_tally_claim()) == NULL)) {
        return NULL;
    }
    uint32_t place = cl_tally_place(lock);
    for (uint32_t i = 0; i < CL_TALLY_PROBES; i++) {
        cl_tally_entry *entry = &table->entry[(place + i) % CL_TALLY_LOCKS];
        uintptr_t there = atomic_load_explicit(&entry->lock, memory_order_relaxed);
        if (there == (uintptr_t)lock) {
            return entry;
        }
        if (there == 0) {
            entry->kind = (uint16_t)kind;
            entry->caller = (uintptr_t)caller;
            atomic_store_explicit(&entry->lock, (uintptr_t)lock, memory_order_release);
            return entry;
        }
    }
    return NULL;
}

static inline void
cl_tally_up(_Atomic uint64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* The calling thread has taken a lock at once; with `failed`, it has not, and does not wait. */
static inline void
cl_tally(uint32_t kind, const void *lock, const void *caller, int failed)
{
    cl_tally_table *table = cl_tally_mine.table;
    cl_tally_entry *entry = table == NULL ? NULL : &table->entry[cl_tally_place(lock)];
    if (entry == NULL || atomic_load_explicit(&entry->lock, memory_order_relaxed) != (uintptr_t)lock) {
        entry = cl_tally_find(kind, lock, caller);
    }
    if (entry != NULL) {
        cl_tally_up(failed ? &entry->failed : &entry->acquires);
        entry->last_caller = failed ? entry->last_caller : (uintptr_t)caller;
    }
}

/* Which call of the calling thread took the lock at once last, 0 if that is not known. */
static uintptr_t
cl_tally_taker(const void *lock)
{
    const cl_tally_table *table = cl_tally_mine.table;
    uint32_t place = cl_tally_place(lock);
    for (uint32_t i = 0; table != NULL && i < CL_TALLY_PROBES; i++) {
        const cl_tally_entry *entry = &table->entry[(place + i) % CL_TALLY_LOCKS];
        if (atomic_load_explicit(&entry->lock, memory_order_relaxed) == (uintptr_t)lock) {
            return entry->last_caller;
        }
    }
    return 0;
}

/* The calling thread has taken a semaphore after a wait. */
static inline void
cl_tally_took(const void *semaphore, const void *caller)
{
    cl_tally_entry *entry = cl_tally_find(CL_NATIVE_SEM, semaphore, caller);
    if (entry != NULL) {
        entry->was_taken = 1;
    }
}

/* The calling thread posts to a semaphore: 1 the first time, if it has never taken it. Then it is no lock, but a
 * signal to others. */
static inline int
cl_tally_signals(const void *semaphore, const void *caller)
{
    cl_tally_entry *entry = cl_tally_find(CL_NATIVE_SEM, semaphore, caller);
    if (entry == NULL || entry->is_signal || entry->was_taken
        || atomic_load_explicit(&entry->acquires, memory_order_relaxed) != 0) {
        return 0;
    }
    entry->is_signal = 1;
    return 1;
}

/* The rest is the writer's. */
static int
cl_tally_is_gone(uint32_t owner)
{
    return syscall(SYS_tgkill, getpid(), owner, 0) != 0;
}

/* Takes back the table of a thread that is gone, all of which has been read. */
static void
cl_tally_take_back(cl_tally_table *table)
{
    memset(table->entry, 0, sizeof table->entry);
    atomic_store_explicit(&table->owner, 0, memory_order_release);
}

#endif
