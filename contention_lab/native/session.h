/* The state shared by recorded threads, locks and the writer.
 *
 * There is at most one recording in a process. `cl_epoch` is its number, 0 when there is none: the one
 * word that a lock looks at to decide whether to record. What belongs to an older epoch is dead.
 */
#ifndef CL_SESSION_H
#define CL_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "native_waits.h"
#include "park.h"
#include "ring.h"
#include "schema.h"
#include "stacks.h"
#include "thread_slots.h"

/* What a lock is called in this recording. Shared by the lock and by the counter blocks of each thread
 * that used it, so that the counters of a lock that is gone can still be written. */
typedef struct cl_lock_info {
    struct cl_lock_info *next; /* waiting to be written, see cl_session.new_locks */
    _Atomic uint32_t references;
    _Atomic uint32_t dead; /* no thread can use the lock any more */
    uint32_t epoch, id, site, parent;
    uint32_t type_bytes, name_bytes;
    char text[]; /* type, then name */
} cl_lock_info;

/* The exact counters of one lock on one thread. Written by that thread alone (plain increments in
 * relaxed atomics), read by the writer at any time. */
typedef struct cl_block {
    struct cl_block *next; /* the thread's list; only the writer takes blocks out */
    cl_lock_info *info;
    uint32_t lock_id;
    _Atomic uint32_t unhashed; /* the thread has forgotten it: the writer may free it */
    _Atomic uint32_t retired;  /* the writer has written its last state (its lock is dead) */
    uint64_t last_try_ns;
    uint64_t written; /* the writer's: sum of the counters when last written */
    _Atomic uint64_t value[CL_C_COUNT];
} cl_block;

#define CL_NESTED_WAITS 4 /* coordination waits inside one another: signal handlers only */

struct cl_coordination {
    uint32_t lock;
    uint64_t end_ns; /* when the lock's re-acquire began, 0 not yet */
    cl_wait_record record;
};

#define CL_MOST_HELD 32 /* locks that a thread holds at once; of more, the later ones are not known */

/* A lock that a thread holds; written by that thread, read by the writer at any time. */
typedef struct {
    _Atomic uint64_t what; /* lock id << 32 | site */
    _Atomic uint64_t since;
} cl_held;

#define CL_ORDER_CACHE 128 /* per thread, direct-mapped */

/* A thread's failed tries in a row, of one lock or several in turn: a wait, whatever it is made of. */
struct cl_tries {
    uint64_t count, last_ns, cpu_ns; /* the CPU time of the thread when it began */
    uint64_t last_cpu_ns;            /* and at the last try that was recorded: asking at each costs too much */
    cl_wait_record record;           /* of the first */
};

#define CL_LONG_SITES 256

#define CL_ABSENT_EVENTS 8 /* between two times that a thread has the GIL */
#define CL_ABSENT_WAITS 4  /* for native locks */

/* What happened while a thread was without the GIL, until its stack can be taken: see absence.h. */
struct cl_absence {
    uint32_t calls; /* in `call`; the only one that a signal handler may change */
    uint32_t has_hold; /* the last hold in `run` ended when it gave the GIL up */
    uint32_t has_gil; /* as far as is known: it is not absent */
    uint64_t unseen_ns; /* GIL waits and holds since the last that a stack was taken for */
    cl_gil_run_record run; /* holds that are not in the ring yet, see gil_runs.h */
    uint64_t run_last_ns;  /* when the last of them began */
    cl_blocking_record call[CL_ABSENT_EVENTS];
    uint32_t natives; /* in `native` */
    cl_native_wait native[CL_ABSENT_WAITS];
};

#define CL_BLOCK_CACHE 64 /* per thread, direct-mapped by lock id */

enum { CL_RUN, CL_STOP, CL_PAUSE };
enum { CL_WRITER_AWAY, CL_WRITER_STARTS, CL_WRITER_RUNS };
enum { CL_THREAD_LIVE, CL_THREAD_EXITED, CL_THREAD_ORPHAN };

typedef struct cl_thread {
    struct cl_thread *next; /* the session's list; only the writer takes threads out */
    uint32_t epoch; /* 0 until its first event with a thread state, see thread.h */
    uint32_t recording, id, native_id;
    _Atomic uint32_t state;
    uint64_t ident, start_ns, cpu_zero;
    _Atomic uint64_t end_ns, end_cpu_ns;
    _Atomic uint32_t flags;
    uint32_t coordinating; /* waits in `coordination`; the thread's own, see coordination.h */
    struct cl_coordination coordination[CL_NESTED_WAITS];
    uint32_t woken_lock; /* what its last coordination wait was on; the thread's own, like the next */
    uint64_t woken_hold; /* ... and when the hold of it that followed began */
    uint32_t slot;              /* in cl_slots */
    struct cl_tries tries;
    uint32_t busy;              /* waits in progress on it; the thread's own */
    _Atomic uint32_t named;     /* 1: `name` is final */
    uint32_t name_tries;        /* how often its name has been looked for in vain; the thread's own */
    char name[128];
    _Atomic uint64_t self_ns, dropped_waits, dropped_holds, dropped_stacks;
    /* the wait in progress, for traces of programs that hang: whole while `waiting` != 0 */
    _Atomic uint32_t waiting;
    uint8_t long_hold[CL_LONG_SITES]; /* by site: the last hold that blocked somebody was long */
    cl_wait_record wait;
    /* see held.h */
    _Atomic uint32_t held_count; /* entries below it are whole */
    uint32_t held_lost, handed_seen, orders;
    cl_held held[CL_MOST_HELD];
    uint64_t order_cache[CL_ORDER_CACHE];
    struct cl_absence absence;
    _Atomic uint64_t gil_total[CL_G_COUNT];
    _Atomic uint64_t gil_waiting; /* since when, 0 not */
    uint64_t gil_wanted_at, gil_took_at; /* its last take: equal if it did not wait */
    _Atomic uint32_t gil_waiting_for; /* the holder */
    _Atomic uint64_t blocked_since; /* in a call that may block, holding a lock; 0 not */
    _Atomic uint32_t blocked_in;
    uint64_t gil_written; /* the writer's: sum of the totals when last written */
    cl_ring ring;
    _Atomic(cl_block *) blocks;
    cl_block **hash; /* open addressing by lock id, the thread's own */
    uint32_t hash_mask, hash_used;
    struct {
        uint32_t lock_id;
        cl_block *block;
    } cache[CL_BLOCK_CACHE];
    cl_frame_cache_entry *frames; /* places of code that are known */
#if CL_FREE_THREADED
    cl_frame_cache_entry own_frames[CL_FRAME_CACHE];
#endif
    uint64_t still_mark, still_cpu, still_since; /* the writer's, see standstill.h */
    uint64_t announced; /* the writer's: end_ns + 1 of the last record written of it */
} cl_thread;

/* A task that holds and waits like a thread, see emit.h. */
typedef struct cl_party {
    struct cl_party *next; /* waiting to be written, see cl_session.new_parties */
    uint64_t start_ns;
    uint32_t id, native_id, name_bytes;
    char name[];
} cl_party;

/* Metadata that came after the start. */
typedef struct cl_meta {
    struct cl_meta *next; /* waiting to be written, see cl_session.new_meta */
    size_t bytes;
    char json[];
} cl_meta;

static struct {
    int level;
    uint32_t stack_depth;
    uint64_t ring_bytes;
    uint64_t process_cpu_zero;
    _Atomic uint32_t next_thread_id;
    _Atomic(cl_thread *) threads;
    _Atomic(cl_lock_info *) new_locks;
    _Atomic(cl_party *) new_parties;
    _Atomic(cl_meta *) new_meta;
    _Atomic uint32_t bell;      /* the writer sleeps on it */
    _Atomic uint32_t stopping;  /* CL_STOP: the writer ends; CL_PAUSE: until the fork is over */
    _Atomic uint32_t forks, fork_calls; /* in progress */
    _Atomic uint32_t writer_state;
    _Atomic uint64_t unrecorded_threads; /* no memory for their state */
    pthread_t writer;
    _Atomic uint32_t writer_native_id;
} cl_session;

static _Atomic uint32_t cl_epoch;
static _Atomic uint64_t cl_step_since; /* when an event loop began its current callback; 0: none runs */
static _Atomic uint64_t cl_step_ended_ns;     /* and ended the last one; 0: none yet */
static _Atomic uint32_t cl_step_thread;       /* whose loop that is; 0 not known */
static _Atomic uint32_t cl_step_stack;        /* where a sample last saw a callback, and ... */
static _Atomic uint64_t cl_step_seen;         /* ... which one: `cl_step_since` */
static _Atomic uint32_t cl_next_epoch;
static _Atomic uint32_t cl_next_lock_id;
static pthread_mutex_t cl_register_mutex = PTHREAD_MUTEX_INITIALIZER; /* see lock_info.h */

static inline void
cl_add(_Atomic uint64_t *counter, uint64_t amount)
{
    /* One writer: a load and a store, not a read-modify-write. Relaxed: readers want totals only. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

static inline void
cl_max(_Atomic uint64_t *counter, uint64_t value)
{
    if (value > atomic_load_explicit(counter, memory_order_relaxed)) {
        atomic_store_explicit(counter, value, memory_order_relaxed);
    }
}

static void
cl_ring_bell(void)
{
    if (atomic_exchange_explicit(&cl_session.bell, 1, memory_order_release) == 0) {
        cl_unpark_one(&cl_session.bell);
    }
}

static void
cl_lock_info_release(cl_lock_info *info)
{
    /* acq_rel: whoever frees has seen all that others did with it */
    if (info != NULL
        && atomic_fetch_sub_explicit(&info->references, 1, memory_order_acq_rel) == 1) {
        free(info);
    }
}

#endif
