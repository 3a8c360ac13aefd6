/* Finding the counter block of a lock on this thread, and registering locks with the recording.
 *
 * Blocks of locks that are gone are given back in two steps, without a lock: the writer writes the
 * last state and marks the block `retired`; the owner, when its table fills, forgets retired blocks
 * and marks them `unhashed`; the writer then frees them.
 */
#ifndef CL_COUNTERS_H
#define CL_COUNTERS_H

#include "thread.h"

static uint32_t
cl_block_slot(const cl_thread *thread, uint32_t lock_id)
{
    return (uint32_t)cl_mix(lock_id) & thread->hash_mask;
}

/* Makes room in the owner's table: forgets retired blocks, doubles it if that is not enough. */
static int
cl_block_rehash(cl_thread *thread)
{
    uint32_t size = thread->hash == NULL ? 0 : thread->hash_mask + 1;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < size; i++) {
        cl_block *block = thread->hash[i];
        if (block != NULL && !atomic_load_explicit(&block->retired, memory_order_acquire)) {
            kept++;
        }
    }
    uint32_t new_size = size == 0 ? 32 : size;
    while (4 * (kept + 1) > 2 * new_size) {
        new_size *= 2;
    }
    cl_block **hash = calloc(new_size, sizeof *hash);
    if (hash == NULL) {
        return -1;
    }
    cl_block **old = thread->hash;
    thread->hash = hash;
    thread->hash_mask = new_size - 1;
    thread->hash_used = 0;
    memset(thread->cache, 0, sizeof thread->cache);
    for (uint32_t i = 0; i < size; i++) {
        cl_block *block = old[i];
        if (block == NULL) {
            continue;
        }
        if (atomic_load_explicit(&block->retired, memory_order_acquire)) {
            atomic_store_explicit(&block->unhashed, 1, memory_order_release);
            continue;
        }
        uint32_t at = cl_block_slot(thread, block->lock_id);
        while (hash[at] != NULL) {
            at = (at + 1) & thread->hash_mask;
        }
        hash[at] = block;
        thread->hash_used++;
    }
    free(old);
    return 0;
}

typedef cl_lock_info *(*cl_info_source)(void *lock, uint32_t epoch);

/* The counters of a lock on this thread, NULL if there are none (any more). */
static cl_block *
cl_block_known(const cl_thread *thread, uint32_t lock_id)
{
    if (thread->hash != NULL) {
        for (uint32_t at = cl_block_slot(thread, lock_id); thread->hash[at] != NULL;
             at = (at + 1) & thread->hash_mask) {
            if (thread->hash[at]->lock_id == lock_id) {
                return thread->hash[at];
            }
        }
    }
    return NULL;
}

static cl_block *
cl_block_find(cl_thread *thread, uint32_t lock_id, void *lock, cl_info_source source)
{
    cl_block *known = cl_block_known(thread, lock_id);
    if (known != NULL) {
        return known;
    }
    if (thread->hash == NULL || 4 * (thread->hash_used + 1) > 3 * (thread->hash_mask + 1)) {
        if (cl_block_rehash(thread) < 0) {
            return NULL;
        }
    }
    cl_lock_info *info = source(lock, thread->epoch); /* a new reference */
    cl_block *block = info == NULL ? NULL : calloc(1, sizeof *block);
    if (block == NULL) {
        cl_lock_info_release(info);
        return NULL;
    }
    block->info = info;
    block->lock_id = lock_id;
    uint32_t at = cl_block_slot(thread, lock_id);
    while (thread->hash[at] != NULL) {
        at = (at + 1) & thread->hash_mask;
    }
    thread->hash[at] = block;
    thread->hash_used++;
    cl_block *head = atomic_load_explicit(&thread->blocks, memory_order_acquire);
    do {
        block->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&thread->blocks, &head, block,
                                                    memory_order_release, memory_order_acquire));
    return block;
}

/* The counters of lock `lock_id` on this thread; NULL if there is no memory. */
static inline cl_block *
cl_block_get(cl_thread *thread, uint32_t lock_id, void *lock, cl_info_source source)
{
    uint32_t at = lock_id % CL_BLOCK_CACHE;
    if (__builtin_expect(thread->cache[at].lock_id == lock_id, 1)) {
        return thread->cache[at].block;
    }
    cl_block *block = cl_block_find(thread, lock_id, lock, source);
    if (block != NULL) {
        thread->cache[at].lock_id = lock_id;
        thread->cache[at].block = block;
    }
    return block;
}

/* Registers a lock: its LOCKS record is queued for the writer. Strings are UTF-8. */
static cl_lock_info *
cl_lock_info_make(uint32_t epoch, uint32_t id, uint32_t site, uint32_t parent, const char *type,
                  const char *name, uint32_t name_bytes)
{
    uint32_t type_bytes = (uint32_t)strlen(type);
    cl_lock_info *info = malloc(sizeof *info + type_bytes + name_bytes);
    if (info == NULL) {
        return NULL;
    }
    info->references = 2; /* the caller's and the writer's */
    info->dead = 0;
    info->epoch = epoch;
    info->id = id;
    info->site = site;
    info->parent = parent;
    info->type_bytes = type_bytes;
    info->name_bytes = name_bytes;
    memcpy(info->text, type, type_bytes);
    memcpy(info->text + type_bytes, name, name_bytes);
    cl_lock_info *head = atomic_load_explicit(&cl_session.new_locks, memory_order_relaxed);
    do {
        info->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&cl_session.new_locks, &head, info,
                                                    memory_order_release, memory_order_relaxed));
    return info;
}

/* Whether this hold, that nobody waited for, is one of the few that say where a lock is taken all the time: of
 * 65,536 acquires one, at the uneven steps of the golden ratio, so that code which takes it in turns is met as
 * often as it takes it. */
static inline int
cl_is_sampled(const cl_block *block)
{
    uint64_t acquires = atomic_load_explicit(&block->value[CL_C_ACQUIRES], memory_order_relaxed);
    return (uint32_t)acquires * 2654435769u < (1u << 16);
}

#endif
