/* The engine's input and output, laid out as `packing.py` declares them. Times are nanoseconds. */
#ifndef CLS_TABLES_H
#define CLS_TABLES_H

#include <stddef.h>
#include <stdint.h>

enum { OP_COMPUTE, OP_SLEEP, OP_ACQUIRE, OP_RELEASE, OP_CALL, OP_POST, OP_SERVE, OP_FINISH };
enum { OP_GIL = 1, OP_READ = 2, OP_SHARD = 4 };
enum { ORDER_COMPETITIVE, ORDER_FIFO, ORDER_PHASE_FAIR, ORDER_CHANNEL };
enum { SPIN_END_PARK, SPIN_END_YIELD };
enum { REASON_TIME, REASON_DONE, REASON_STUCK, REASON_LIMIT };

typedef struct {
    uint8_t code, flags;
    uint16_t spread;
    int32_t target;
    double ns;
} op_row;

typedef struct {
    int64_t start, stop;
} item_row;

typedef struct {
    int32_t first, last, endless, pad;
} queue_row;

typedef struct {
    int32_t order, spin_end, adaptive, costs, costs_length, wakes_at_once, gil_first,
        permits;
    double spin_ns, backoff_min_ns, backoff_max_ns, acquire_ns, release_ns, transfer_ns, park_ns,
        wake_call_ns, wake_extra_ns;
} lock_row;

typedef struct {
    int32_t cores, gil;
    double slice_ns, tick_ns, switch_ns, wake_same_ns, wake_other_ns, preempt_after_ns,
        gil_interval_ns, warmup_ns, end_ns;
    uint64_t seed, events_limit;
} machine_row;

typedef struct {
    uint64_t acquires, contended, parks, wakes;
    double wait_ns, longest_wait_ns, busy_ns;
} lock_stats;

typedef struct {
    uint64_t finished;
    double run_ns, spin_ns, overhead_ns, ready_ns, wait_ns, gil_ns, response_ns, end_ns;
} thread_stats;

typedef struct {
    double now_ns, measured_ns;
    uint64_t events, preemptions;
    int32_t reason, unfinished;
} totals_row;

typedef struct {
    double time_ns;
    int32_t kind, who;
} event_row;

_Static_assert(sizeof(op_row) == 16 && sizeof(item_row) == 16 && sizeof(queue_row) == 16, "layout");
_Static_assert(sizeof(lock_row) == 104 && sizeof(machine_row) == 96, "layout");
_Static_assert(sizeof(lock_stats) == 56 && sizeof(thread_stats) == 72, "layout");
_Static_assert(sizeof(totals_row) == 40 && sizeof(event_row) == 16, "layout");

/* A typed view of a buffer that the caller keeps alive. */
typedef struct {
    const machine_row *machine;
    const op_row *ops;
    const item_row *items;
    const queue_row *queues;
    const lock_row *locks;
    const double *costs;
    const int32_t *threads;
    size_t op_count, item_count, queue_count, lock_count, cost_count, thread_count;
} tables;

typedef struct {
    lock_stats *locks;
    thread_stats *threads;
    totals_row *totals;
    uint64_t *responses;
    event_row *events;
    size_t response_count, event_count;
} results;

/* NULL, or why the tables cannot be simulated: whatever passes here is never read out of bounds. */
static const char *
tables_fault(const tables *in)
{
    const machine_row *machine = in->machine;
    if (machine->cores < 1 || machine->cores > 65536) {
        return "the number of cores is out of range";
    }
    if (machine->gil >= 0 && (size_t)machine->gil >= in->lock_count) {
        return "the GIL is no lock";
    }
    for (size_t i = 0; i < in->lock_count; i++) {
        const lock_row *lock = &in->locks[i];
        if (lock->costs < 0 || lock->costs_length < 1
            || (size_t)lock->costs + (size_t)lock->costs_length > in->cost_count) {
            return "a lock's hand-off costs are out of range";
        }
        if (lock->order < ORDER_COMPETITIVE || lock->order > ORDER_CHANNEL) {
            return "a lock's order is unknown";
        }
        if (lock->backoff_max_ns > 0 && lock->order != ORDER_COMPETITIVE) {
            return "only a lock without an order can back off";
        }
        if (lock->gil_first && lock->order != ORDER_COMPETITIVE) {
            return "only a lock without an order can be tried after the GIL";
        }
    }
    for (size_t i = 0; i < in->op_count; i++) {
        const op_row *op = &in->ops[i];
        if (op->code > OP_FINISH || !(op->ns >= 0)) {
            return "an operation is unknown or takes less than no time";
        }
        int64_t last = op->target;
        if (op->code == OP_ACQUIRE && op->flags & OP_SHARD) {
            if (!(op->ns >= 1 && op->ns <= 1e6)) {
                return "the number of shards is out of range";
            }
            last += (int64_t)op->ns - 1;
        }
        if (op->code >= OP_ACQUIRE && op->code <= OP_SERVE
            && (op->target < 0 || last >= (int64_t)in->lock_count)) {
            return "an operation's lock is out of range";
        }
    }
    for (size_t i = 0; i < in->item_count; i++) {
        if (in->items[i].start < 0 || in->items[i].stop < in->items[i].start
            || (uint64_t)in->items[i].stop > in->op_count) {
            return "an item is out of range";
        }
    }
    for (size_t i = 0; i < in->queue_count; i++) {
        const queue_row *queue = &in->queues[i];
        if (queue->first < 0 || queue->last < queue->first || (size_t)queue->last > in->item_count
            || (queue->endless && queue->first == queue->last)) {
            return "a queue is out of range";
        }
    }
    for (size_t i = 0; i < in->thread_count; i++) {
        if (in->threads[i] < 0 || (size_t)in->threads[i] >= in->queue_count) {
            return "a thread's queue is out of range";
        }
    }
    return NULL;
}

#endif
