/* Who waits for whom at this moment, as the writer thread sees it, without the GIL.
 *
 * Threads publish the wait they are in and the locks they hold. A thread that has not changed either for a
 * while, and (if it only holds) has used no CPU time, stands still; what is published of it is whole then.
 * Of a thread that goes on meanwhile something may be read half; it is not believed.
 */
#ifndef CL_STANDSTILL_H
#define CL_STANDSTILL_H

#include "held.h"
#include "tables.h"

#define CL_STILL_CPU_NS 1000000u /* a thread that has run for longer has moved */
#define CL_MOST_RING 64

/* Copies the wait that a thread is in; 0 if it is in none, or has left it meanwhile. */
static int
cl_wait_of(const cl_thread *thread, cl_wait_record *wait)
{
    if (!atomic_load_explicit(&thread->waiting, memory_order_acquire)) {
        return 0;
    }
    *wait = thread->wait;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&thread->waiting, memory_order_relaxed)
           && thread->wait.start_ns == wait->start_ns && thread->wait.lock == wait->lock;
}

static int
cl_is_live(const cl_thread *thread)
{
    return atomic_load_explicit(&thread->state, memory_order_relaxed) == CL_THREAD_LIVE;
}

static cl_thread *
cl_first_thread(void)
{
    return atomic_load_explicit(&cl_session.threads, memory_order_acquire);
}

static cl_thread *
cl_thread_by_id(uint32_t id)
{
    cl_thread *thread = cl_first_thread();
    while (thread != NULL && thread->id != id) {
        thread = thread->next;
    }
    return thread;
}

/* The entry of a lock in the recording, through a thread that has used it; NULL if there is none. */
static const cl_lock_info *
cl_info_of(uint32_t lock_id)
{
    for (cl_thread *thread = cl_first_thread(); thread != NULL; thread = thread->next) {
        cl_block *block = atomic_load_explicit(&thread->blocks, memory_order_acquire);
        for (; block != NULL; block = block->next) {
            if (block->lock_id == lock_id) {
                return block->info;
            }
        }
    }
    return NULL;
}

/* Whether the entry stands for the end of a thread, see thread_join.py. */
static int
cl_is_join(const cl_lock_info *info)
{
    static const char type[] = "threading.Thread";
    return info != NULL && info->type_bytes >= sizeof type - 1
           && memcmp(info->text, type, sizeof type - 1) == 0;
}

static cl_thread *
cl_thread_by_name(const char *name, size_t bytes)
{
    cl_thread *found = NULL;
    for (cl_thread *thread = cl_first_thread(); thread != NULL; thread = thread->next) {
        if (strnlen(thread->name, sizeof thread->name) == bytes && memcmp(thread->name, name, bytes) == 0
            && cl_is_live(thread)) {
            if (found != NULL) {
                return NULL; /* two of a name: who knows which */
            }
            found = thread;
        }
    }
    return found;
}

/* The thread whose list has the lock; NULL for none. */
static cl_thread *
cl_holder_of(uint32_t lock_id)
{
    for (cl_thread *thread = cl_first_thread(); thread != NULL; thread = thread->next) {
        uint32_t count = atomic_load_explicit(&thread->held_count, memory_order_acquire);
        for (uint32_t at = 0; at < count && at < CL_MOST_HELD; at++) {
            if (cl_held_what(thread, at) >> 32 == lock_id) {
                return thread;
            }
        }
    }
    return NULL;
}

/* Whom a wait is for: the holder of the lock, the thread to be joined; NULL if that is not known. */
static cl_thread *
cl_awaited(const cl_wait_record *wait)
{
    if (wait->kind == CL_CONTENTION) {
        cl_thread *holder = cl_holder_of(wait->lock);
        return holder != NULL ? holder : cl_thread_by_id(wait->holder);
    }
    const cl_lock_info *info = cl_info_of(wait->lock);
    return cl_is_join(info) ? cl_thread_by_name(info->text + info->type_bytes, info->name_bytes) : NULL;
}

/* The ring of threads waiting for each other that begins and ends with `first`, each in a wait that began
 * by `until`; its length, 0 if there is none. */
static unsigned
cl_ring_of(cl_thread *first, uint64_t until, cl_thread **ring)
{
    unsigned count = 0;
    for (cl_thread *thread = first; count < CL_MOST_RING;) {
        cl_wait_record wait;
        if (!cl_wait_of(thread, &wait) || wait.start_ns > until) {
            return 0;
        }
        ring[count++] = thread;
        thread = cl_awaited(&wait);
        if (thread == first) {
            return count;
        }
        if (thread == NULL) {
            return 0;
        }
    }
    return 0;
}

/* Notes whether a thread has moved since the last look; since when it has not. */
static uint64_t
cl_still_since(cl_thread *thread, uint64_t now)
{
    cl_wait_record wait;
    int waits = cl_wait_of(thread, &wait);
    uint64_t mark = waits ? cl_mix(wait.start_ns ^ (uint64_t)wait.lock << 32) : 0;
    uint32_t count = atomic_load_explicit(&thread->held_count, memory_order_acquire);
    for (uint32_t at = 0; at < count && at < CL_MOST_HELD; at++) {
        uint64_t since = atomic_load_explicit(&thread->held[at].since, memory_order_relaxed);
        mark = cl_mix(mark ^ cl_held_what(thread, at) ^ since);
    }
    uint64_t cpu = waits ? 0 : cl_other_thread_cpu_ns(thread->native_id);
    if (mark != thread->still_mark || cpu > thread->still_cpu + CL_STILL_CPU_NS || cpu < thread->still_cpu
        || thread->still_since == 0) {
        thread->still_mark = mark;
        thread->still_cpu = cpu;
        thread->still_since = now;
    }
    return thread->still_since;
}

#endif
