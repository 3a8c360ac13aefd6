/* The writer thread: every 100 ms (or when a ring is half full) it empties the rings, writes what they
 * refer to, then the records, then the counters that changed. It never needs the GIL and calls nothing
 * of Python.
 */
#ifndef CL_WRITER_H
#define CL_WRITER_H

#include <signal.h>

#include "gil_probe.h"
#include "layer_chunks.h"
#include "native_tables.h"
#include "tables.h"

#define CL_FLUSH_NS 100000000u
#define CL_THREADS_EVERY_NS 500000000u /* CPU times of running threads */

static struct {
    cl_file file;
    cl_written written;
    cl_buffer waits, holds, table, gil, orders, states, load, steps, layer[CL_LAYER_KINDS];
    cl_native_tables *native; /* NULL: no layer, or no memory */
    cl_status_record status; /* totals so far; of threads that are gone, in full */
    cl_status_record last;   /* as last written */
    uint64_t last_threads_ns, last_totals_ns;
} cl_writer;

/* Empties one ring. Short holds go straight into a chunk of their thread. */
static void
cl_drain(cl_thread *thread, cl_buffer *brief)
{
    const cl_ring_item *item;
    /* Bounded: a producer faster than us must not keep us here. */
    uint64_t budget = 2 * thread->ring.capacity;
    while (budget > 0 && (item = cl_ring_peek(&thread->ring)) != NULL) {
        const void *record = item + 1;
        budget -= budget < item->bytes ? budget : item->bytes;
        if (item->kind == CL_WAITS) {
            cl_put(&cl_writer.waits, record, sizeof(cl_wait_record));
            cl_writer.waits.count++;
            cl_writer.status.waits++;
        }
        else if (item->kind == CL_HOLDS) {
            cl_put(&cl_writer.holds, record, sizeof(cl_hold_record));
            cl_writer.holds.count++;
            cl_writer.status.holds++;
        }
        else if (item->kind == CL_LOOP_STEPS) {
            cl_put(&cl_writer.steps, record, sizeof(cl_loop_step));
            cl_writer.steps.count++;
        }
        else if (item->kind == CL_ORDER) {
            cl_put(&cl_writer.orders, record, sizeof(cl_order_record));
            cl_writer.orders.count++;
        }
        else if (item->kind != CL_SHORT_HOLDS) {
            cl_layer_put(cl_writer.layer, item->kind, record);
        }
        else {
            cl_put(brief, record, sizeof(cl_short_hold_record));
            brief->count++;
            cl_writer.status.holds++;
        }
        cl_ring_pop(&thread->ring, item);
    }
}

static void
cl_drain_gil_probe(void)
{
    const cl_ring_item *item;
    while (cl_gil_probe.ring.data != NULL && (item = cl_ring_peek(&cl_gil_probe.ring)) != NULL) {
        cl_buffer *buffer = item->kind == CL_GIL ? &cl_writer.gil
                            : item->kind == CL_STATES ? &cl_writer.states : &cl_writer.load;
        cl_put(buffer, item + 1,
               item->kind == CL_GIL ? sizeof(cl_gil_sample)
               : item->kind == CL_STATES ? sizeof(cl_state_record) : sizeof(cl_load_record));
        buffer->count++;
        cl_ring_pop(&cl_gil_probe.ring, item);
    }
}

static cl_status_record
cl_status_now(void)
{
    cl_status_record status = cl_writer.status;
    cl_thread *thread = atomic_load_explicit(&cl_session.threads, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        status.dropped_waits += atomic_load_explicit(&thread->dropped_waits, memory_order_relaxed);
        status.dropped_holds += atomic_load_explicit(&thread->dropped_holds, memory_order_relaxed);
        status.dropped_stacks += atomic_load_explicit(&thread->dropped_stacks, memory_order_relaxed);
        status.self_ns += atomic_load_explicit(&thread->self_ns, memory_order_relaxed);
        status.threads_alive +=
            atomic_load_explicit(&thread->state, memory_order_relaxed) == CL_THREAD_LIVE;
    }
    status.dropped_waits += atomic_load_explicit(&cl_native_ring.dropped, memory_order_relaxed);
    status.time_ns = cl_now();
    status.bytes_written = cl_writer.file.bytes_written;
    status.writer_cpu_ns = cl_thread_cpu_ns();
    status.process_cpu_ns = cl_process_cpu_ns() - cl_session.process_cpu_zero;
    status.clock_error_ns = cl_clock_error_ns();
    status.flags = cl_writer.file.error != 0 ? CL_STATUS_WRITE_FAILED : 0;
    return status;
}

/* Takes an exited thread's last numbers and frees it. `before` is its predecessor, never NULL. */
static void
cl_bury(cl_thread *before, cl_thread *thread)
{
    cl_status_record *status = &cl_writer.status;
    status->dropped_waits += atomic_load_explicit(&thread->dropped_waits, memory_order_relaxed);
    status->dropped_holds += atomic_load_explicit(&thread->dropped_holds, memory_order_relaxed);
    status->dropped_stacks += atomic_load_explicit(&thread->dropped_stacks, memory_order_relaxed);
    status->self_ns += atomic_load_explicit(&thread->self_ns, memory_order_relaxed);
    cl_total_add_thread(thread);
    before->next = thread->next;
    cl_thread_free(thread);
}

static void
cl_record_open_waits(cl_thread *thread, uint64_t now)
{
    if (atomic_load_explicit(&thread->waiting, memory_order_acquire)) {
        cl_wait_record wait = thread->wait;
        if (wait.start_ns <= now) {
            wait.end_ns = now;
            cl_put(&cl_writer.waits, &wait, sizeof wait);
            cl_writer.waits.count++;
            cl_writer.status.waits++;
        }
    }
}

/* Whether somebody waits for the lock at this moment. */
static int
cl_is_waited_for(const cl_thread *first, uint32_t lock_id)
{
    for (const cl_thread *thread = first; thread != NULL; thread = thread->next) {
        if (atomic_load_explicit(&thread->waiting, memory_order_acquire)
            && thread->wait.lock == lock_id) {
            return 1;
        }
    }
    return 0;
}

/* Writes the holds that are not over: those that somebody waits for, or all. */
static void
cl_record_open_holds(const cl_thread *first, const cl_thread *thread, uint64_t now, int all)
{
    uint32_t count = atomic_load_explicit(&thread->held_count, memory_order_acquire);
    for (uint32_t at = 0; at < count && at < CL_MOST_HELD; at++) {
        uint64_t what = atomic_load_explicit(&thread->held[at].what, memory_order_relaxed);
        cl_hold_record hold = {
            .start_ns = atomic_load_explicit(&thread->held[at].since, memory_order_relaxed),
            .end_ns = now, .lock = (uint32_t)(what >> 32), .thread = thread->id,
            .site = (uint32_t)what, .flags = CL_HOLD_OPEN};
        hold.waiters = (uint32_t)cl_is_waited_for(first, hold.lock);
        if (hold.start_ns <= now && (hold.waiters || all)) {
            hold.flags |= hold.waiters ? 0 : CL_HOLD_UNCONTENDED;
            cl_put(&cl_writer.holds, &hold, sizeof hold);
            cl_writer.holds.count++;
            cl_writer.status.holds++;
        }
    }
}

static void
cl_flush(int last)
{
    cl_file *file = &cl_writer.file;
    uint64_t now = cl_now();
    /* The state is read before the ring is emptied: of a thread seen as exited, everything is. */
    cl_thread *first = atomic_load_explicit(&cl_session.threads, memory_order_acquire);
    cl_buffer *brief = NULL;
    uint32_t threads = 0;
    for (cl_thread *thread = first; thread != NULL; thread = thread->next) {
        threads++;
    }
    brief = calloc(threads + 1, sizeof *brief);
    uint8_t *gone = calloc(threads + 1, 1);
    if (brief == NULL || gone == NULL) {
        free(brief);
        free(gone);
        return; /* the rings keep what they hold; what does not fit is counted as dropped */
    }
    uint32_t i = 0;
    for (cl_thread *thread = first; thread != NULL; thread = thread->next, i++) {
        gone[i] = atomic_load_explicit(&thread->state, memory_order_acquire) == CL_THREAD_EXITED;
        cl_drain(thread, &brief[i]);
        if (last || gone[i]) {
            cl_layer_put_run(cl_writer.layer, thread);
        }
        if (last) {
            cl_record_open_waits(thread, now);
            cl_record_open_holds(first, thread, now, 1);
            cl_layer_put_open(cl_writer.layer, thread, now);
        }
    }
    cl_drain_gil_probe();
    cl_native_drain(cl_writer.native);
    /* acq_rel: we see the list whole, and own it */
    cl_lock_info *new_locks = atomic_exchange_explicit(&cl_session.new_locks, NULL,
                                                       memory_order_acq_rel);
    cl_party *new_parties = atomic_exchange_explicit(&cl_session.new_parties, NULL,
                                                     memory_order_acq_rel);
    cl_meta *new_meta = atomic_exchange_explicit(&cl_session.new_meta, NULL, memory_order_acq_rel);
    cl_write_meta(file, new_meta);
    cl_write_interned(file, &cl_writer.written, &cl_writer.table);
    cl_write_locks(file, new_locks, &cl_writer.table);
    /* Between two beats only full rings are emptied; totals keep the beat. */
    int totals = last || now - cl_writer.last_totals_ns >= CL_FLUSH_NS;
    int all = last || now - cl_writer.last_threads_ns >= CL_THREADS_EVERY_NS;
    i = 0;
    for (cl_thread *thread = first; thread != NULL; thread = thread->next, i++) {
        if (all || gone[i] || thread->announced == 0) {
            cl_write_thread(file, thread, &cl_writer.table);
            thread->announced = 1;
        }
    }
    cl_write_parties(new_parties, &cl_writer.table);
    cl_file_send(file, CL_THREADS, 0, 0, &cl_writer.table);
    if (all) {
        cl_writer.last_threads_ns = now;
    }
    cl_file_send(file, CL_WAITS, sizeof(cl_wait_record), 0, &cl_writer.waits);
    cl_file_send(file, CL_HOLDS, sizeof(cl_hold_record), 0, &cl_writer.holds);
    cl_file_send(file, CL_GIL, sizeof(cl_gil_sample), 0, &cl_writer.gil);
    cl_file_send(file, CL_LOOP_STEPS, sizeof(cl_loop_step), 0, &cl_writer.steps);
    cl_file_send(file, CL_ORDER, sizeof(cl_order_record), 0, &cl_writer.orders);
    cl_file_send(file, CL_STATES, sizeof(cl_state_record), 0, &cl_writer.states);
    cl_file_send(file, CL_LOAD, sizeof(cl_load_record), 0, &cl_writer.load);
    cl_layer_send(file, cl_writer.layer);
    cl_native_send(file, cl_writer.native);
    i = 0;
    for (cl_thread *thread = first; thread != NULL; thread = thread->next, i++) {
        cl_file_send(file, CL_SHORT_HOLDS, sizeof(cl_short_hold_record), thread->id, &brief[i]);
        cl_buffer_free(&brief[i]);
        if (totals || gone[i]) {
            cl_layer_put_totals(cl_writer.layer, thread);
            cl_write_counters(file, thread, &cl_writer.table);
        }
    }
    cl_file_send(file, CL_COUNTERS, sizeof(cl_counter_record), 0, &cl_writer.table);
    cl_layer_send(file, cl_writer.layer);
    if (totals) {
        cl_writer.last_totals_ns = now;
        cl_writer.last = cl_status_now();
        cl_file_chunk(file, last ? CL_END : CL_STATUS, sizeof cl_writer.last, 0, 1, &cl_writer.last,
                      sizeof cl_writer.last);
    }
    cl_file_flush(file);
    /* The head of the list is where new threads are pushed: it stays until it is no longer first. */
    cl_thread *before = first;
    cl_thread *thread = first == NULL ? NULL : first->next;
    for (i = 1; thread != NULL; i++) {
        cl_thread *next = thread->next;
        if (gone[i]) {
            cl_bury(before, thread);
        }
        else {
            before = thread;
        }
        thread = next;
    }
    free(brief);
    free(gone);
}

/* The end of the file. */
static void
cl_flush_last(void)
{
    cl_flush(1);
    cl_thread *thread = atomic_load_explicit(&cl_session.threads, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        cl_total_add_thread(thread);
        cl_wait_record wait = thread->wait;
        if (atomic_load_explicit(&thread->waiting, memory_order_acquire) && wait.kind == CL_CONTENTION) {
            uint64_t now = cl_now();
            cl_totals.contended++; /* counted like one that is over */
            cl_totals.wait_ns += now > wait.start_ns ? now - wait.start_ns : 0;
        }
    }
}

static void cl_hang_look(void); /* hang_watch.h */

static void *
cl_writer_main(void *unused)
{
    (void)unused;
#if defined(__linux__)
    prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "clt-writer", 0, 0, 0);
#endif
    cl_gil_mine.is_recorders = 1;
    atomic_store_explicit(&cl_session.writer_native_id, cl_native_thread_id(), memory_order_relaxed);
    while (!atomic_load_explicit(&cl_session.stopping, memory_order_acquire)) {
        cl_park(&cl_session.bell, 0, cl_monotonic_ns() + CL_FLUSH_NS);
        atomic_store_explicit(&cl_session.bell, 0, memory_order_relaxed);
        cl_flush(0);
        cl_hang_look();
    }
    if (atomic_load_explicit(&cl_session.stopping, memory_order_acquire) == CL_STOP) {
        cl_flush_last();
    }
    return NULL;
}

#endif
