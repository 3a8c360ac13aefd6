/* The writer's round: what waits in the ring, and from time to time what threads have counted by themselves.
 */
#ifndef CL_LAYER_PROGRAM_TALLIES_H
#define CL_LAYER_PROGRAM_TALLIES_H

#include "program_not_seen.h"
#include "program_tables.h"
#include "tally.h"

#define CL_TALLY_EVERY 8u  /* rounds: a third of a second */
#define CL_TALLY_LEAST 100u /* acquires by one thread that make a lock worth a name if nobody waits for it */

/* The semaphore is no lock but a signal: to wait for it is to wait for others. */
static void
cl_program_put_signal(cl_program_tables *tables, const cl_native_wait *signal)
{
    int is_new;
    uint64_t key = cl_native_lock_key(signal->lock, signal->kind);
    cl_number(&tables->signals, key, &is_new);
    uint32_t lock = cl_number_of(&tables->locks, key);
    if (lock != 0) {
        tables->for_others[lock] = 1;
    }
}

/* The number of a lock that somebody has counted; 0 if it is not worth one, or has to wait for a better name. */
static uint32_t
cl_program_counted_lock(cl_program_tables *tables, const cl_tally_entry *entry, uintptr_t lock,
                        uint64_t acquires, int last)
{
    cl_native_wait taken = {.lock = lock, .kind = entry->kind, .depth = 1};
    uint32_t known = cl_number_of(&tables->locks, cl_native_lock_key(lock, entry->kind));
    if (known != 0 || acquires < CL_TALLY_LEAST) {
        return known;
    }
    taken.at[0] = entry->caller;
    /* In a language's own library everybody takes his locks at the same place. */
    if (!last && tables->is_standard[cl_program_frame(tables, entry->caller)]) {
        return 0;
    }
    known = cl_program_lock(tables, &taken);
    cl_program_put_early(tables, cl_native_lock_key(lock, entry->kind));
    return known;
}

/* 1 if something has been counted since. */
static int
cl_program_put_tally(cl_program_tables *tables, const cl_tally_table *tally, cl_tally_entry *entry, int last)
{
    uintptr_t address = atomic_load_explicit(&entry->lock, memory_order_acquire);
    uint64_t acquires = atomic_load_explicit(&entry->acquires, memory_order_relaxed);
    uint64_t failed = atomic_load_explicit(&entry->failed, memory_order_relaxed);
    if (address == 0 || acquires + failed == entry->seen_acquires + entry->seen_failed) {
        return 0;
    }
    uint32_t lock = cl_program_counted_lock(tables, entry, address, acquires, last);
    uint32_t owner = atomic_load_explicit(&tally->owner, memory_order_relaxed);
    cl_counter_record *counter =
        lock == 0 ? NULL : cl_program_counter(tables, lock, cl_program_thread(tables, owner, tally->since));
    if (counter == NULL) {
        return 0;
    }
    counter->value[CL_C_ACQUIRES] += acquires - entry->seen_acquires;
    counter->value[CL_C_FAILED_TRIES] += failed - entry->seen_failed;
    entry->seen_acquires = acquires;
    entry->seen_failed = failed;
    return 1;
}

static int
cl_program_put_tallies(cl_program_tables *tables, int last)
{
    int changed = 0;
    uint32_t used = atomic_load_explicit(&cl_tallies.used, memory_order_relaxed);
    for (uint32_t i = 0; i < used; i++) {
        cl_tally_table *tally = &cl_tallies.table[i];
        uint32_t owner = atomic_load_explicit(&tally->owner, memory_order_acquire);
        int is_gone = owner != 0 && cl_tally_is_gone(owner); /* asked first: then all that it did is there */
        for (uint32_t k = 0; k < CL_TALLY_LOCKS && owner != 0; k++) {
            changed |= cl_program_put_tally(tables, tally, &tally->entry[k], last || is_gone);
        }
        if (is_gone) {
            cl_tally_take_back(tally);
        }
    }
    return changed;
}

/* Empties the ring into the file. */
static void
cl_program_flush(cl_program_tables *tables, int last)
{
    const cl_native_wait *wait;
    if (tables == NULL) {
        return;
    }
    cl_file *file = &tables->file;
    for (uint32_t i = 0; i < CL_NATIVE_SLOTS && (wait = cl_native_peek()) != NULL; i++) {
        if (wait->flags & CL_PROGRAM_SIGNAL) {
            cl_program_put_signal(tables, wait);
        }
        else if (wait->flags & CL_NATIVE_RELEASE) {
            cl_program_put_hold(tables, wait);
        }
        else {
            uint64_t key = cl_native_lock_key(wait->lock, wait->kind);
            int is_first = cl_number_of(&tables->locks, key) == 0;
            cl_program_put_wait(tables, wait);
            if (is_first) {
                cl_program_put_early(tables, key);
            }
        }
        cl_native_pop();
    }
    int counted = (last || ++tables->flushes % CL_TALLY_EVERY == 0) && cl_program_put_tallies(tables, last);
    int changed = counted || tables->waits.count + tables->holds.count > 0;
    cl_file_send(file, CL_NATIVE_IMAGES, 0, 0, &tables->images.records);
    cl_file_send(file, CL_CODES, 0, 0, &tables->codes);
    cl_file_send(file, CL_FRAMES, sizeof(cl_frame_record), 0, &tables->frame_records);
    cl_file_send(file, CL_STACKS, 0, 0, &tables->stack_records);
    cl_file_send(file, CL_LOCKS, 0, 0, &tables->lock_records);
    cl_file_send(file, CL_THREADS, 0, 0, &tables->thread_records);
    cl_file_send(file, CL_WAITS, sizeof(cl_wait_record), 0, &tables->waits);
    cl_file_send(file, CL_HOLDS, sizeof(cl_hold_record), 0, &tables->holds);
    for (uint32_t i = 1; changed && i <= tables->pairs.count && i < CL_PROGRAM_PAIRS; i++) {
        cl_native_put(&tables->counters, &tables->counter[i], sizeof tables->counter[i]);
        tables->counters.count++;
    }
    cl_file_send(file, CL_COUNTERS, sizeof(cl_counter_record), 0, &tables->counters);
    if (last) {
        cl_program_put_not_seen(file);
    }
    if (changed || last) {
        cl_status_record status = {
            .time_ns = cl_now(), .waits = tables->wait_count, .holds = tables->hold_count,
            .bytes_written = file->bytes_written, .process_cpu_ns = cl_process_cpu_ns(),
            .dropped_waits = atomic_load_explicit(&cl_native_ring.dropped, memory_order_relaxed),
            .clock_error_ns = cl_clock_error_ns(), .threads_alive = tables->threads.count,
            .flags = file->error != 0 ? CL_STATUS_WRITE_FAILED : 0};
        cl_file_chunk(file, last ? CL_END : CL_STATUS, sizeof status, 0, 1, &status, sizeof status);
        cl_file_flush(file);
    }
}

#endif
