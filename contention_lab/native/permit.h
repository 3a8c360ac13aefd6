/* A permit that somebody has: one hold of a semaphore, or of anything that Python code takes and gives back.
 * Which permit a release ends is decided in permits.h; here it is timed.
 */
#ifndef CL_PERMIT_H
#define CL_PERMIT_H

#include "source.h"

typedef struct {
    uint64_t start_ns; /* 0: not recorded */
    uint32_t party, site;
    int blocked;    /* somebody was already waiting */
    int shared;     /* somebody may wait out of sight, in another process */
    PyObject *task; /* owned; NULL for a thread */
} cl_permit;

/* The calling thread's state if something is being recorded, else NULL. */
static inline cl_thread *
cl_recording_thread(void)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    return epoch == 0 ? NULL : cl_thread_get(epoch);
}

/* A permit that `party` (0: this thread) has from now on, taken at `site` (0: here). count: it is an acquire
 * that no wait has counted. `thread`: the calling one's state, NULL if nothing is recorded. */
static void
cl_permit_begin(cl_permit *permit, cl_lock *lock, cl_thread *thread, uint32_t party, uint32_t site,
                int count)
{
    memset(permit, 0, sizeof *permit);
    permit->party = party;
    permit->site = site;
    if (thread == NULL) {
        return;
    }
    if (party == 0) {
        permit->party = thread->id;
    }
    if (site == 0 && cl_session.level >= CL_LEVEL_PROFILE) {
        permit->site = cl_site_capture(thread->frames);
    }
    cl_block *block = count ? cl_block_get(thread, lock->id, lock, cl_lock_register) : NULL;
    if (block != NULL) {
        cl_add(&block->value[CL_C_ACQUIRES], 1);
    }
    permit->start_ns = cl_now() | 1u;
}

/* It has been given back by `party` (0: this thread). Recorded if it made somebody wait, or may have, or the
 * level is `trace`; counted in any case. */
static void
cl_permit_end(const cl_permit *permit, cl_lock *lock, cl_thread *thread, uint64_t end_ns, uint32_t party,
              uint32_t waiters, int handed_off)
{
    cl_block *block = thread == NULL || permit->start_ns == 0 || cl_session.level == CL_LEVEL_COUNTERS
                          ? NULL
                          : cl_block_get(thread, lock->id, lock, cl_lock_register);
    if (block == NULL) {
        return;
    }
    waiters = waiters == 0 && permit->blocked ? 1 : waiters;
    int blocking = waiters > 0 || (permit->shared && cl_session.level >= CL_LEVEL_PROFILE);
    cl_hold_record hold = {
        .start_ns = permit->start_ns, .end_ns = end_ns < permit->start_ns ? permit->start_ns : end_ns,
        .lock = lock->id, .thread = permit->party, .site = permit->site, .waiters = waiters,
        .release_thread = party != 0 ? party : thread->id,
        .flags = (handed_off ? CL_HOLD_HANDED_OFF : 0u) | (blocking ? 0u : CL_HOLD_UNCONTENDED)};
    uint32_t watched = cl_watched(lock);
    hold.flags |= watched & CL_HOLD_WATCHED;
    cl_count_hold(block, hold.end_ns - hold.start_ns);
    if (waiters > 0) {
        cl_add(&block->value[CL_C_BLOCKING_HOLDS], 1);
    }
    if (blocking || (watched & CL_HOLD_WANTS_STACK && cl_session.level >= CL_LEVEL_PROFILE)) {
        hold.stack = cl_stack_capture(thread->frames, cl_session.stack_depth);
    }
    if (blocking || watched || cl_session.level == CL_LEVEL_TRACE) {
        cl_thread_record(thread, CL_HOLDS, &hold, sizeof hold);
    }
}

#endif
