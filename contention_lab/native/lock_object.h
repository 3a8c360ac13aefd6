/* The lock object all kinds share, and the two primitive operations of those that are one word.
 *
 * `state` follows Drepper's futex mutex: 0 free, 1 held, 2 held and somebody may be parked. Kinds that are
 * more than a word have theirs behind this object; lock_kind.h tells them apart.
 *
 * Fields marked "the holder's" are written only between an acquire and its release, so the lock itself
 * orders them; they are atomics because a release by the wrong thread, or the victims' glance at
 * `owner`, may race with them. That costs nothing: relaxed loads and stores are plain moves.
 */
#ifndef CL_LOCK_OBJECT_H
#define CL_LOCK_OBJECT_H

#include "counters.h"

enum { CL_FREE = 0, CL_HELD = 1, CL_HELD_PARKED = 2 };
enum { CL_KIND_MUTEX, CL_KIND_SPIN, CL_KIND_ADAPTIVE, CL_KIND_TICKET, CL_KIND_MCS,
       CL_KIND_READ, CL_KIND_WRITE };
enum { CL_LABEL_TYPE, CL_LABEL_LOCK, CL_LABEL_RLOCK, CL_LABEL_READ, CL_LABEL_WRITE };

/* Types that stand in for those of `threading` go by their names; others by their own (NULL). */
static const char *const cl_label_text[] = {NULL, "threading.Lock", "threading.RLock", "RWLock.read",
                                            "RWLock.write"};

typedef struct cl_lock {
    PyObject_HEAD
    _Atomic uint32_t state;
    uint32_t id;                      /* unique in the process; 0: not to be recorded */
    _Atomic uint64_t owner;           /* the holder's: thread id << 32 | site, as recorded */
    _Atomic uint64_t hold_start;      /* the holder's: ns since the start of the recording */
    _Atomic uint64_t hold_cpu;        /* the holder's: its CPU time at the start, 0 not measured */
    _Atomic uint32_t hold_preemptions; /* the holder's: how often it had been preempted before */
    _Atomic uint32_t hold_epoch;      /* the holder's: the recording the three belong to */
    _Atomic uint32_t waiters;         /* recorded waiters */
    _Atomic uint32_t gave_up;         /* some waiter timed out during this hold */
    _Atomic uint32_t watchers;        /* threads that wait for something else, giving it up: see watch.h */
    _Atomic uint32_t watched_left;    /* holds that may still be recorded for them */
    _Atomic uint64_t watched_since;   /* when that number was last set */
    uint32_t yield_after, park_after; /* of spinners: rounds, UINT32_MAX never */
    uint8_t kind, backoff;
    uint8_t label;                    /* what to call the type, see cl_label_text */
    _Atomic uint8_t handed_off;       /* some thread has released it that did not hold it */
    int site_lasti;
    PyCodeObject *site_code;          /* what made the lock; owned, may be NULL */
    PyObject *name;                   /* str or NULL; owned */
    _Atomic uint64_t waker;           /* who last woke a waiter: thread id << 32 | stack */
    _Atomic uint32_t waker_epoch;     /* the recording it belongs to */
    _Atomic uint32_t wakes;           /* how often somebody was about to wake waiters */
    _Atomic uintptr_t condition;      /* the condition to which the three belong; its address, see condition.h */
    PyCodeObject *via;                /* the outermost library function that made it; pinned */
    PyObject *type_name;              /* of a Source: str, owned; else NULL */
    struct cl_lock *whole;            /* what it is a part of; owned, else NULL */
    int shares_entry;                 /* ... and whose id and entry it goes by */
    cl_lock_info *info;               /* guarded by cl_register_mutex */
    PyObject *weak_references;
} cl_lock;

/* A recorded wait ends without the lock. Who releases it, and reads `waiters` first, sees the waiter or that he has
 * given up: at no moment neither. */
static inline void
cl_wait_given_up(cl_lock *lock)
{
    atomic_store_explicit(&lock->gave_up, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_release);
}

static inline int
cl_word_try(cl_lock *lock)
{
    uint32_t expected = CL_FREE;
    /* acquire: what the last holder wrote before its release is visible to us */
    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, CL_HELD,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Frees the lock; returns the old state. release: our writes are visible to the next holder. */
static inline uint32_t
cl_word_unlock(cl_lock *lock)
{
    uint32_t old = atomic_exchange_explicit(&lock->state, CL_FREE, memory_order_release);
    if (__builtin_expect(old == CL_HELD_PARKED, 0)) {
        cl_unpark_one(&lock->state);
    }
    return old;
}

/* What to call the lock's type, in malloc'ed memory: "Mutex", "threading.Lock", and if a library made it
 * for the program, "threading.Lock in Queue". */
static char *
cl_lock_type_text(cl_lock *lock)
{
    uint32_t bytes = 0;
    const char *label = cl_label_text[lock->label];
    if (label == NULL && lock->type_name == NULL) {
        const char *dot = strrchr(Py_TYPE(lock)->tp_name, '.');
        return strdup(dot == NULL ? Py_TYPE(lock)->tp_name : dot + 1);
    }
    char *text = lock->type_name == NULL ? strdup(label) : cl_utf8_copy(lock->type_name, &bytes);
    char *maker = lock->via == NULL ? NULL : cl_utf8_copy(lock->via->co_qualname, &bytes);
    if (maker == NULL || text == NULL) {
        free(maker);
        return text;
    }
    static const char init[] = ".__init__", context[] = "BaseContext."; /* of multiprocessing */
    if (bytes > sizeof init - 1 && strcmp(maker + bytes - (sizeof init - 1), init) == 0) {
        maker[bytes - (sizeof init - 1)] = 0;
    }
    const char *who = strncmp(maker, context, sizeof context - 1) == 0 ? maker + sizeof context - 1 : maker;
    const char *dot = strrchr(text, '.');
    char *whole = text;
    if (strcmp(who, dot == NULL ? text : dot + 1) != 0) { /* else a factory: RLock() makes an RLock */
        whole = malloc(strlen(text) + 4 + strlen(who) + 1);
        if (whole != NULL) {
            sprintf(whole, "%s in %s", text, who);
        }
        free(text);
    }
    free(maker);
    return whole;
}

/* The lock's entry in the recording, a new reference. */
static cl_lock_info *
cl_lock_register(void *object, uint32_t epoch)
{
    cl_lock *lock = object;
    if (lock->shares_entry) {
        lock = lock->whole;
    }
    if (lock == NULL || lock->id == 0) {
        return NULL;
    }
    uint32_t site = 0, name_bytes = 0, parent = 0;
    if (lock->whole != NULL) { /* a part has no parts: one level of recursion */
        parent = lock->whole->id;
        cl_lock_info_release(cl_lock_register(lock->whole, epoch));
    }
    if (cl_session.level >= CL_LEVEL_COUNTERS && lock->site_code != NULL) {
        site = cl_frame_intern(lock->site_code, lock->site_lasti);
    }
    char *name = lock->name == NULL ? NULL : cl_utf8_copy(lock->name, &name_bytes);
    char *type = cl_lock_type_text(lock);
    if (type == NULL) {
        free(name);
        return NULL;
    }
    cl_lock_info *old = NULL;
    pthread_mutex_lock(&cl_register_mutex);
    cl_lock_info *info = lock->info;
    if (info == NULL || info->epoch != epoch) {
        old = info;
        info = cl_lock_info_make(epoch, lock->id, site, parent, type, name == NULL ? "" : name,
                                 name_bytes);
        lock->info = info; /* owns the reference of cl_lock_info_make */
    }
    if (info != NULL) {
        atomic_fetch_add_explicit(&info->references, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&cl_register_mutex);
    cl_lock_info_release(old);
    free(name);
    free(type);
    return info;
}

#endif
