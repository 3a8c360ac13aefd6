/* A single-producer, single-consumer byte ring: one per recorded thread, emptied by the writer.
 *
 * A record is 8-byte aligned and never wraps: where the rest of the ring is too short, a padding
 * record (kind 0) fills it. A full ring refuses: the caller counts a drop and goes on, it never waits.
 *
 * `head` and `tail` grow for ever (2^64 bytes); only their low bits index the ring. The producer
 * publishes with a release store to `tail`, which the consumer's acquire load pairs with, so a record
 * is read only when whole; the other way round for `head`, so a record is overwritten only when read.
 */
#ifndef CL_RING_H
#define CL_RING_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint32_t kind;  /* CL_WAITS, CL_HOLDS, CL_SHORT_HOLDS, CL_ORDER, or 0 for padding */
    uint32_t bytes; /* of this record, this header included, a multiple of 8 */
} cl_ring_item;

typedef struct {
    uint8_t *data;
    uint64_t capacity; /* a power of two */
    _Atomic uint64_t tail;
    uint64_t seen_head; /* the producer's last look at head: most pushes need no other */
    char apart[40];     /* keeps the two sides on different cache lines */
    _Atomic uint64_t head;
} cl_ring;

#define CL_RING_BYTES(payload) ((uint32_t)((sizeof(cl_ring_item) + (payload) + 7u) & ~7u))

/* Producer: room for `payload` bytes of `kind`, or NULL if the ring is full. */
static inline void *
cl_ring_reserve(cl_ring *ring, uint32_t kind, uint32_t payload, uint64_t *next_tail)
{
    uint64_t bytes = CL_RING_BYTES(payload);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t offset = tail & (ring->capacity - 1);
    uint64_t room = ring->capacity - offset;
    uint64_t needed = room < bytes ? room + bytes : bytes;
    if (tail + needed - ring->seen_head > ring->capacity) {
        ring->seen_head = atomic_load_explicit(&ring->head, memory_order_acquire);
        if (tail + needed - ring->seen_head > ring->capacity) {
            return NULL;
        }
    }
    if (room < bytes) {
        cl_ring_item padding = {0, (uint32_t)room};
        memcpy(ring->data + offset, &padding, sizeof padding);
        offset = 0;
    }
    cl_ring_item item = {kind, (uint32_t)bytes};
    memcpy(ring->data + offset, &item, sizeof item);
    *next_tail = tail + needed;
    return ring->data + offset + sizeof item;
}

/* Producer: makes what was reserved visible. True if the ring is now more than half full. */
static inline int
cl_ring_commit(cl_ring *ring, uint64_t next_tail)
{
    atomic_store_explicit(&ring->tail, next_tail, memory_order_release);
    if (next_tail - ring->seen_head <= ring->capacity / 2) {
        return 0;
    }
    ring->seen_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    return next_tail - ring->seen_head > ring->capacity / 2;
}

/* Consumer: the next record, or NULL if there is none. Valid until cl_ring_pop(). */
static inline const cl_ring_item *
cl_ring_peek(cl_ring *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    while (head != tail) {
        const cl_ring_item *item =
            (const cl_ring_item *)(const void *)(ring->data + (head & (ring->capacity - 1)));
        if (item->kind != 0) {
            return item;
        }
        head += item->bytes;
        atomic_store_explicit(&ring->head, head, memory_order_release);
    }
    return NULL;
}

static inline void
cl_ring_pop(cl_ring *ring, const cl_ring_item *item)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + item->bytes, memory_order_release);
}

#endif
