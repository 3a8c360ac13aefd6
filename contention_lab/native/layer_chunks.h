/* What the layer brings, on its way to the file: its records, and at the end what was still going on.
 * Runs on the writer thread.
 */
#ifndef CL_LAYER_CHUNKS_H
#define CL_LAYER_CHUNKS_H

#include "gil_events.h"
#include "tables.h"

enum {
    CL_LAYER_BLOCKING, CL_LAYER_GIL_WAITS, CL_LAYER_GIL_HOLDS, CL_LAYER_GIL_RUNS, CL_LAYER_GIL_TOTALS,
    CL_LAYER_KINDS
};

static const struct {
    uint32_t kind, bytes;
} cl_layer_kind[CL_LAYER_KINDS] = {
    [CL_LAYER_BLOCKING] = {CL_BLOCKING, sizeof(cl_blocking_record)},
    [CL_LAYER_GIL_WAITS] = {CL_GIL_WAITS, sizeof(cl_gil_wait_record)},
    [CL_LAYER_GIL_HOLDS] = {CL_GIL_HOLDS, sizeof(cl_gil_hold_record)},
    [CL_LAYER_GIL_RUNS] = {CL_GIL_RUNS, sizeof(cl_gil_run_record)},
    [CL_LAYER_GIL_TOTALS] = {CL_GIL_TOTALS, sizeof(cl_gil_total_record)},
};

static void
cl_layer_put(cl_buffer *buffers, uint32_t kind, const void *record)
{
    for (int i = 0; i < CL_LAYER_KINDS; i++) {
        if (cl_layer_kind[i].kind == kind) {
            cl_put(&buffers[i], record, cl_layer_kind[i].bytes);
            buffers[i].count++;
        }
    }
}

/* The holds of a thread that are not in its ring: the thread has ended, or the recording is over. */
static void
cl_layer_put_run(cl_buffer *buffers, cl_thread *thread)
{
    cl_gil_run_record *run = &thread->absence.run;
    if (run->count > 1) {
        cl_layer_put(buffers, CL_GIL_RUNS, run);
    }
    else if (run->count == 1) {
        cl_gil_hold_record hold = cl_gil_run_only(run);
        cl_layer_put(buffers, CL_GIL_HOLDS, &hold);
    }
    run->count = 0;
}

/* The recording is over, and this thread waits for the GIL, is blocked in a call, or has not come back since it
 * gave up the GIL to others. */
static void
cl_layer_put_open(cl_buffer *buffers, cl_thread *thread, uint64_t now)
{
    if (atomic_load_explicit(&thread->state, memory_order_acquire) != CL_THREAD_LIVE) {
        return;
    }
    uint64_t waiting = atomic_load_explicit(&thread->gil_waiting, memory_order_acquire);
    if (waiting != 0 && waiting <= now) {
        cl_gil_wait_record wait = {
            .start_ns = waiting, .end_ns = now, .thread = thread->id, .flags = CL_GIL_OPEN,
            .holder = atomic_load_explicit(&thread->gil_waiting_for, memory_order_relaxed)};
        cl_layer_put(buffers, CL_GIL_WAITS, &wait);
        cl_add(&thread->gil_total[CL_G_WAITS], 1);
        cl_add(&thread->gil_total[CL_G_WAIT_NS], now - waiting);
    }
    uint64_t blocked = atomic_load_explicit(&thread->blocked_since, memory_order_acquire);
    if (blocked != 0 && blocked <= now) {
        cl_blocking_record record = {
            .start_ns = blocked, .end_ns = now, .thread = thread->id, .lock = cl_held_innermost(thread),
            .call = (uint16_t)atomic_load_explicit(&thread->blocked_in, memory_order_relaxed),
            .flags = CL_BLOCKING_OPEN};
        cl_layer_put(buffers, CL_BLOCKING, &record);
    }
}

/* The totals of one thread, if they have changed; with the hold in progress. */
static void
cl_layer_put_totals(cl_buffer *buffers, cl_thread *thread)
{
    cl_gil_total_record record = {.thread = thread->id};
    uint64_t sum = 0;
    for (int i = 0; i < CL_G_COUNT; i++) {
        record.value[i] = atomic_load_explicit(&thread->gil_total[i], memory_order_relaxed);
    }
    uint64_t since = atomic_load_explicit(&cl_gil.since, memory_order_relaxed);
    uint64_t now = cl_now();
    if (since != 0 && since < now
        && atomic_load_explicit(&cl_gil.holder, memory_order_relaxed) == thread->id) {
        record.value[CL_G_HELD_NS] += now - since;
    }
    for (int i = 0; i < CL_G_COUNT; i++) {
        sum += record.value[i];
    }
    if (sum != thread->gil_written) {
        thread->gil_written = sum;
        cl_layer_put(buffers, CL_GIL_TOTALS, &record);
    }
}

static void
cl_layer_send(cl_file *file, cl_buffer *buffers)
{
    for (int i = 0; i < CL_LAYER_KINDS; i++) {
        cl_file_send(file, cl_layer_kind[i].kind, cl_layer_kind[i].bytes, 0, &buffers[i]);
    }
}

#endif
