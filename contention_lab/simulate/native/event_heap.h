/* Events to come, the earliest first, and among equals the one planned first: a binary heap. */
#ifndef CLS_EVENT_HEAP_H
#define CLS_EVENT_HEAP_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    double time;
    uint64_t planned; /* a running number */
    int32_t who;
    uint32_t stamp;
    int32_t kind;
} event;

typedef struct {
    event *events;
    size_t count, room;
    uint64_t planned;
    int failed; /* out of memory: events are lost, the simulation must end */
} event_heap;

static inline int
event_before(const event *a, const event *b)
{
    return a->time < b->time || (a->time == b->time && a->planned < b->planned);
}

static int
heap_grow(event_heap *heap)
{
    size_t room = heap->room ? 2 * heap->room : 256;
    event *events = realloc(heap->events, room * sizeof *events);
    if (events == NULL) {
        heap->failed = 1;
        return 0;
    }
    heap->events = events;
    heap->room = room;
    return 1;
}

static inline void
heap_push(event_heap *heap, double time, int32_t kind, int32_t who, uint32_t stamp)
{
    event added = {time, heap->planned++, who, stamp, kind};
    if (heap->count == heap->room && !heap_grow(heap)) {
        return;
    }
    size_t place = heap->count++;
    while (place > 0) {
        size_t parent = (place - 1) / 2;
        if (!event_before(&added, &heap->events[parent])) {
            break;
        }
        heap->events[place] = heap->events[parent];
        place = parent;
    }
    heap->events[place] = added;
}

/* The earliest event; there must be one. */
static inline event
heap_pop(event_heap *heap)
{
    event first = heap->events[0], moved = heap->events[--heap->count];
    size_t place = 0;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count
            && event_before(&heap->events[child + 1], &heap->events[child])) {
            child++;
        }
        if (!event_before(&heap->events[child], &moved)) {
            break;
        }
        heap->events[place] = heap->events[child];
        place = child;
    }
    heap->events[place] = moved;
    return first;
}

#endif
