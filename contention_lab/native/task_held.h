/* Which locks each task holds, and in which order it takes them: as held.h, for locks of asyncio.
 *
 * An ORDER record is written once the task has the lock; that it had to wait for it is known anyway. Tasks
 * are many and short-lived, so of all that take the same locks at the same places two write them down: it
 * takes two to wait for each other.
 */
#ifndef CL_TASK_HELD_H
#define CL_TASK_HELD_H

#include "beside.h"

#define CL_TASK_MOST_HELD 4 /* of more, the later ones are not known */

/* The first part of the record of a task (tasks.h). */
typedef struct {
    cl_beside beside;
    uint32_t held_count, held_epoch;
    uint64_t held[CL_TASK_MOST_HELD]; /* lock id << 32 | site */
} cl_task_held;

/* The task has the lock from now on. `thread`: the calling one's state. Who takes it out may be another one:
 * without a GIL, a critical section keeps the list whole. */
static void
cl_task_held_add(cl_task_held *task, cl_thread *thread, const cl_lock *lock, uint32_t party, uint32_t site)
{
    if (atomic_load_explicit(&lock->handed_off, memory_order_relaxed)) {
        return;
    }
    uint64_t held[CL_TASK_MOST_HELD];
    uint32_t count;
    CL_BEGIN_CRITICAL(task);
    if (task->held_epoch != thread->epoch) {
        task->held_epoch = thread->epoch;
        task->held_count = 0;
    }
    count = task->held_count;
    memcpy(held, task->held, count * sizeof *held);
    if (count < CL_TASK_MOST_HELD) {
        task->held[task->held_count++] = (uint64_t)lock->id << 32 | site;
    }
    CL_END_CRITICAL();
    if (count > 0 && cl_session.level >= CL_LEVEL_PROFILE) {
        uint64_t key = cl_mix(((uint64_t)lock->id << 32 | site) ^ (party & 1u) << 31);
        for (uint32_t at = 0; at < count; at++) {
            key = cl_mix(key ^ held[at]);
        }
        if (cl_order_is_new(thread, key)) {
            cl_order_write(thread, party, lock, 0, held, count);
        }
    }
}

/* The task has the lock no longer. */
static void
cl_task_held_remove(cl_task_held *task, uint32_t lock_id)
{
    CL_BEGIN_CRITICAL(task);
    for (uint32_t at = task->held_count; at-- > 0;) {
        if (task->held[at] >> 32 == lock_id) {
            task->held_count--;
            memmove(&task->held[at], &task->held[at + 1],
                    (task->held_count - at) * sizeof *task->held);
            break;
        }
    }
    CL_END_CRITICAL();
}

#endif
