/* A grow-only table of unique items: lookups take no lock, insertions take one mutex.
 *
 * Items live in segments that never move, so the writer can read item i without a lock once
 * `count` > i (the release store to `count` publishes it). The hash index is replaced by a larger one
 * when it fills; old ones are kept, since a reader may still be in them (in all less than the last).
 *
 * Nothing of Python may be called with the mutex held: on a free-threaded build another thread could
 * wait for us in a place where it cannot be stopped, while we wait for a stop of the world to end.
 */
#ifndef CL_INTERN_H
#define CL_INTERN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define CL_SEGMENT_BITS 12
#define CL_SEGMENT_ITEMS (1u << CL_SEGMENT_BITS)
#define CL_SEGMENTS 256 /* a million items */

typedef struct cl_index {
    struct cl_index *older;
    uint32_t mask;
    _Atomic uint32_t slot[]; /* item id, 0 empty */
} cl_index;

typedef struct {
    size_t item_bytes;
    _Atomic(cl_index *) index;
    _Atomic uint32_t count; /* ids 1..count are valid */
    _Atomic(char *) segment[CL_SEGMENTS];
} cl_table;

static pthread_mutex_t cl_intern_mutex = PTHREAD_MUTEX_INITIALIZER;

static inline void *
cl_table_item(cl_table *table, uint32_t id)
{
    char *segment = atomic_load_explicit(&table->segment[(id - 1) >> CL_SEGMENT_BITS],
                                         memory_order_acquire);
    return segment + (size_t)((id - 1) & (CL_SEGMENT_ITEMS - 1)) * table->item_bytes;
}

typedef int (*cl_same)(const void *item, const void *key);

static inline uint32_t
cl_table_find(cl_table *table, uint64_t hash, const void *key, cl_same same)
{
    cl_index *index = atomic_load_explicit(&table->index, memory_order_acquire);
    if (index == NULL) {
        return 0;
    }
    for (uint32_t at = (uint32_t)hash & index->mask;; at = (at + 1) & index->mask) {
        /* acquire: the item behind an id we see here is whole */
        uint32_t id = atomic_load_explicit(&index->slot[at], memory_order_acquire);
        if (id == 0 || same(cl_table_item(table, id), key)) {
            return id;
        }
    }
}

typedef uint64_t (*cl_item_hash)(const void *item);

static int
cl_table_grow(cl_table *table, cl_item_hash item_hash)
{
    cl_index *old = atomic_load_explicit(&table->index, memory_order_relaxed);
    uint32_t size = old == NULL ? 256 : 2 * (old->mask + 1);
    cl_index *index = calloc(1, sizeof(cl_index) + size * sizeof(_Atomic uint32_t));
    if (index == NULL) {
        return -1;
    }
    index->mask = size - 1;
    index->older = old;
    uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    for (uint32_t id = 1; id <= count; id++) {
        uint32_t at = (uint32_t)item_hash(cl_table_item(table, id)) & index->mask;
        while (atomic_load_explicit(&index->slot[at], memory_order_relaxed) != 0) {
            at = (at + 1) & index->mask;
        }
        atomic_store_explicit(&index->slot[at], id, memory_order_relaxed);
    }
    atomic_store_explicit(&table->index, index, memory_order_release);
    return 0;
}

/* Call with the mutex held, after cl_table_find() failed under it. Copies `item`; 0 if full. */
static uint32_t
cl_table_insert(cl_table *table, const void *item, cl_item_hash item_hash)
{
    uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    uint32_t where = count >> CL_SEGMENT_BITS;
    if (where >= CL_SEGMENTS) {
        return 0;
    }
    cl_index *index = atomic_load_explicit(&table->index, memory_order_relaxed);
    if (index == NULL || 2 * (uint64_t)(count + 1) > index->mask) {
        if (cl_table_grow(table, item_hash) < 0) {
            return 0;
        }
        index = atomic_load_explicit(&table->index, memory_order_relaxed);
    }
    if (atomic_load_explicit(&table->segment[where], memory_order_relaxed) == NULL) {
        char *segment = calloc(CL_SEGMENT_ITEMS, table->item_bytes);
        if (segment == NULL) {
            return 0;
        }
        atomic_store_explicit(&table->segment[where], segment, memory_order_release);
    }
    uint32_t id = count + 1;
    memcpy(cl_table_item(table, id), item, table->item_bytes);
    uint32_t at = (uint32_t)item_hash(item) & index->mask;
    while (atomic_load_explicit(&index->slot[at], memory_order_relaxed) != 0) {
        at = (at + 1) & index->mask;
    }
    atomic_store_explicit(&table->count, id, memory_order_release);
    atomic_store_explicit(&index->slot[at], id, memory_order_release);
    return id;
}

/* splitmix64's finaliser: spreads pointers and small integers over all bits. */
static inline uint64_t
cl_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xBF58476D1CE4E5B9u;
    value ^= value >> 27;
    value *= 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

#endif
