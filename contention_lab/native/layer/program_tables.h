/* The trace of a program that is not Python, as its writer thread makes it: locks, functions, threads, waits
 * and holds get numbers when first seen. Functions stand where Python's code objects do, without lines: these are
 * looked up by who reads the trace, from the offsets of the calls in their files.
 */
#ifndef CL_LAYER_PROGRAM_TABLES_H
#define CL_LAYER_PROGRAM_TABLES_H

#include <sys/mman.h>

#include "../native_images.h"
#include "../native_waits.h"
#include "../park.h"
#include "standard_names.h"

#define CL_PROGRAM_PAIRS 8192u /* of a lock and a thread: a power of two */
#define CL_PROGRAM_FIRST_BYTES (1u << 18) /* of a file, at most: its header, the metadata, the end */
#define CL_PROGRAM_SIGNAL 256u /* no event, but word of a semaphore: a thread posts to it that has never taken it */

#define CL_PROGRAM_EARLY 4096u /* pages that nobody writes to are not there */

typedef struct {
    cl_file file;
    cl_native_images images;
    cl_numbers locks, frames, stacks, threads, pairs, signals;
    cl_counter_record counter[CL_PROGRAM_PAIRS];
    cl_buffer codes, frame_records, stack_records, lock_records, thread_records, waits, holds, counters;
    uintptr_t function[CL_NAMES]; /* by frame: where its function begins, 0 unknown */
    uint8_t names_lock[CL_NAMES]; /* by frame: its function's name speaks of a lock */
    uint8_t is_standard[CL_NAMES]; /* by frame: of a language's own library, which takes locks for others */
    uint8_t for_others[CL_NAMES]; /* by lock: to wait for it is to wait for others to do something */
    cl_native_wait early[CL_PROGRAM_EARLY]; /* the last releases of locks that no wait is known for yet; depth 0: put */
    uint32_t early_count;
    uint64_t early_lost[16]; /* a bit by key: of such a lock one has made room for others */
    uint64_t wait_count, hold_count, flushes;
} cl_program_tables;

static const char *const cl_native_type[] = {
    "native lock", "pthread_mutex", "pthread_rwlock", "pthread_cond", "sem", "pthread_spinlock",
    "pthread_barrier", "futex", "pthread", "sched_yield"};

static char cl_program_file[CL_SYMBOL_BYTES]; /* the program's own, which has no name as a library */

/* From here on chunks are gathered in memory of the allocator's. */
static void
cl_program_tables_grow(cl_program_tables *tables)
{
    memset(&tables->file.out, 0, sizeof tables->file.out);
}

static cl_program_tables *
cl_program_tables_make(const cl_owned_file *owned, const char *meta)
{
    /* Not from the allocator: a program may end while it has that one's lock. */
    cl_program_tables *tables = mmap(NULL, sizeof *tables + CL_PROGRAM_FIRST_BYTES, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tables == MAP_FAILED) {
        return NULL;
    }
    tables->file.out.data = (char *)(tables + 1);
    tables->file.out.room = CL_PROGRAM_FIRST_BYTES;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    tables->file.owned = *owned;
    ssize_t length = readlink("/proc/self/exe", cl_program_file, sizeof cl_program_file - 1);
    cl_program_file[length > 0 ? length : 0] = 0;
    cl_file_header header = {
        .major = 1, .minor = 0, .header_bytes = sizeof header,
        .start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
        .mono_ns = cl_clock.zero_ns, .pid = (uint32_t)getpid(), .level = CL_LEVEL_PROFILE,
        .clock = (uint8_t)cl_clock.source, .ticks_per_ns = 4294967296.0 / (double)cl_clock.multiplier};
    memcpy(header.magic, CL_MAGIC, sizeof header.magic);
    header.crc32 = cl_crc32(0, &header, offsetof(cl_file_header, crc32));
    cl_native_put(&tables->file.out, &header, sizeof header);
    cl_file_chunk(&tables->file, CL_META, 0, 0, 1, meta, strlen(meta));
    cl_file_flush(&tables->file);
    return tables;
}

/* The function, or the offset in its file where there is no symbol. */
static void
cl_program_name(char *name, size_t size, const cl_symbol *symbol)
{
    if (symbol->symbol[0] == 0) {
        snprintf(name, size, "0x%llx", (unsigned long long)symbol->offset);
    }
    else {
        snprintf(name, size, "%s%s", symbol->is_within ? "" : "~", symbol->symbol);
    }
}

static uint32_t
cl_program_frame(cl_program_tables *tables, uintptr_t address)
{
    int is_new;
    uint32_t id = cl_number(&tables->frames, address + (address == 0), &is_new);
    if (is_new) {
        cl_symbol symbol;
        char name[CL_SYMBOL_BYTES + 32];
        cl_symbol_find(&symbol, address);
        cl_program_name(name, sizeof name, &symbol);
        const char *file = symbol.image[0] == 0 ? cl_program_file : symbol.image;
        cl_native_image(&tables->images, &symbol, file);
        uint32_t code[4] = {id, 0, (uint32_t)strlen(name), (uint32_t)strlen(file)};
        cl_native_put(&tables->codes, code, sizeof code);
        cl_native_put(&tables->codes, name, code[2]);
        cl_native_put(&tables->codes, file, code[3]);
        tables->codes.count++;
        tables->is_standard[id] = cl_name_is_standard(symbol.symbol) || cl_name_is_gthread(symbol.symbol);
        tables->names_lock[id] = strstr(symbol.symbol, "lock") != NULL;
        tables->function[id] = symbol.is_within ? symbol.start : 0;
        cl_frame_record frame = {.id = id, .code = id, .lasti = (uint32_t)symbol.offset};
        cl_native_put(&tables->frame_records, &frame, sizeof frame);
        tables->frame_records.count++;
    }
    return id;
}

static uint32_t
cl_program_stack(cl_program_tables *tables, const cl_native_wait *wait)
{
    uint64_t key = 0;
    uint32_t frames[CL_NATIVE_DEPTH], depth = 0;
    for (uint32_t i = 0; i < wait->depth; i++) {
        frames[depth] = cl_program_frame(tables, wait->at[i]);
        if (depth == 0 && tables->is_standard[frames[0]] && i + 1 < wait->depth) {
            continue; /* the place is where the program calls it */
        }
        key = cl_native_mix(key ^ frames[depth]) + i;
        depth++;
    }
    int is_new;
    uint32_t id = cl_number(&tables->stacks, key + (key == 0), &is_new);
    if (is_new) {
        uint32_t head[2] = {id, depth};
        cl_native_put(&tables->stack_records, head, sizeof head);
        cl_native_put(&tables->stack_records, frames, depth * sizeof *frames);
        tables->stack_records.count++;
    }
    return id;
}

static uint32_t
cl_program_lock(cl_program_tables *tables, const cl_native_wait *wait)
{
    int is_new;
    uint32_t id = cl_number(&tables->locks, cl_native_lock_key(wait->lock, wait->kind), &is_new);
    if (is_new) {
        const char *type = cl_native_type[wait->kind <= CL_NATIVE_YIELD ? wait->kind : 0];
        uint32_t site = cl_program_frame(tables, wait->at[0]);
        int names_lock = tables->names_lock[site];
        for (uint32_t i = 1; i < wait->depth && tables->is_standard[site]; i++) {
            site = cl_program_frame(tables, wait->at[i]);
            names_lock |= tables->is_standard[site] && tables->names_lock[site];
        }
        uint32_t head[6] = {id, site, 0, 0, (uint32_t)strlen(type), 0};
        cl_native_put(&tables->lock_records, head, sizeof head);
        cl_native_put(&tables->lock_records, type, head[4]);
        tables->lock_records.count++;
        /* A word in the kernel may be a lock, a condition, a thread asleep: the function's name tells. */
        tables->for_others[id] = wait->kind == CL_NATIVE_COND || wait->kind == CL_NATIVE_BARRIER
                                 || wait->kind == CL_NATIVE_THREAD || wait->kind == CL_NATIVE_YIELD
                                 || cl_number_of(&tables->signals,
                                                 cl_native_lock_key(wait->lock, wait->kind)) != 0
                                 || (wait->kind == CL_NATIVE_FUTEX && !names_lock);
    }
    return id;
}

static uint32_t
cl_program_thread(cl_program_tables *tables, uint32_t native_id, uint64_t start_ns)
{
    int is_new;
    uint32_t id = native_id == 0 ? 0 : cl_number(&tables->threads, native_id, &is_new);
    if (id != 0 && is_new) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%u/comm", native_id);
        FILE *file = fopen(path, "re");
        if (file != NULL) {
            size_t length = fread(name, 1, sizeof name - 1, file);
            fclose(file);
            name[length > 0 ? length - 1 : 0] = 0;
        }
        uint32_t numbers[2] = {id, native_id}, is_main = native_id == (uint32_t)getpid();
        uint64_t times[4] = {0, start_ns, 0, 0};
        uint32_t rest[2] = {CL_THREAD_FOREIGN | (is_main ? CL_THREAD_MAIN : 0u), (uint32_t)strlen(name)};
        cl_native_put(&tables->thread_records, numbers, sizeof numbers);
        cl_native_put(&tables->thread_records, times, sizeof times);
        cl_native_put(&tables->thread_records, rest, sizeof rest);
        cl_native_put(&tables->thread_records, name, rest[1]);
        tables->thread_records.count++;
    }
    return id;
}

/* The counters of a lock and a thread; NULL if there is no room. */
static cl_counter_record *
cl_program_counter(cl_program_tables *tables, uint32_t lock, uint32_t thread)
{
    int is_new;
    uint32_t at = cl_number(&tables->pairs, (uint64_t)lock << 32 | thread, &is_new);
    if (at == 0 || at >= CL_PROGRAM_PAIRS) {
        return NULL;
    }
    tables->counter[at].lock = lock;
    tables->counter[at].thread = thread;
    return &tables->counter[at];
}

static void
cl_program_put_wait(cl_program_tables *tables, const cl_native_wait *wait)
{
    int is_coordination = tables->for_others[cl_program_lock(tables, wait)];
    int gave_up = (wait->flags & CL_NATIVE_GAVE_UP) != 0;
    cl_wait_record record = {
        .start_ns = wait->start_ns, .end_ns = wait->end_ns, .lock = cl_program_lock(tables, wait),
        .thread = cl_program_thread(tables, wait->native_id, wait->start_ns),
        .stack = cl_program_stack(tables, wait),
        .holder = cl_program_thread(tables, wait->holder, wait->start_ns),
        .outcome = gave_up ? CL_TIMED_OUT : CL_ACQUIRED,
        .kind = is_coordination ? CL_COORDINATION : CL_CONTENTION};
    uint64_t length = wait->end_ns - wait->start_ns;
    int is_spin = wait->kind == CL_NATIVE_SPIN || wait->kind == CL_NATIVE_YIELD;
    *(is_spin ? &record.spin_ns : &record.park_ns) = length;
    cl_native_put(&tables->waits, &record, sizeof record);
    tables->waits.count++;
    tables->wait_count++;
    cl_counter_record *counter = is_coordination ? NULL
                                                 : cl_program_counter(tables, record.lock, record.thread);
    if (counter != NULL) {
        counter->value[gave_up ? CL_C_TIMED_OUT : CL_C_ACQUIRES]++;
        counter->value[CL_C_CONTENDED]++;
        counter->value[CL_C_WAIT_NS] += length;
        counter->value[is_spin ? CL_C_SPIN_NS : CL_C_PARK_NS] += length;
        if (length > counter->value[CL_C_MAX_WAIT_NS]) {
            counter->value[CL_C_MAX_WAIT_NS] = length;
        }
    }
}

static uint32_t
cl_program_early_bit(uint64_t key)
{
    return (uint32_t)(key * 0x9E3779B97F4A7C15u >> 54);
}

static void
cl_program_put_hold(cl_program_tables *tables, const cl_native_wait *release)
{
    cl_native_wait with_acquirer = *release, *wait = &with_acquirer;
    uint32_t lock = cl_number_of(&tables->locks, cl_native_lock_key(wait->lock, wait->kind));
    if (lock == 0) { /* it gets its name from who waits for it, which is told when that is over */
        cl_native_wait *early = &tables->early[tables->early_count++ % CL_PROGRAM_EARLY];
        if (early->depth != 0) {
            uint32_t bit = cl_program_early_bit(cl_native_lock_key(early->lock, early->kind));
            tables->early_lost[bit / 64] |= (uint64_t)1 << bit % 64;
        }
        *early = *release;
        return;
    }
    if (tables->for_others[lock]) {
        return;
    }
    uint32_t first = 0;
    while (first + 1 < wait->depth && tables->is_standard[cl_program_frame(tables, wait->at[first])]) {
        first++;
    }
    if (wait->acquired_at != 0) {
        /* A function that releases in its last call is not on the stack any more: where it took the lock is. */
        uint32_t taker = cl_program_frame(tables, wait->acquired_at);
        if (tables->function[taker] != 0 && !tables->is_standard[taker]
            && tables->function[taker] != tables->function[cl_program_frame(tables, wait->at[first])]) {
            wait->depth -= wait->depth == CL_NATIVE_DEPTH;
            memmove(wait->at + 1, wait->at + first, (wait->depth - first) * sizeof *wait->at);
            wait->at[0] = wait->acquired_at;
            wait->depth = wait->depth - first + 1;
            first = 0;
        }
    }
    uint32_t thread = cl_program_thread(tables, wait->native_id, wait->start_ns);
    cl_hold_record record = {
        .start_ns = wait->start_ns, .end_ns = wait->end_ns, .lock = lock, .thread = thread,
        .release_thread = thread, .waiters = 1, .stack = cl_program_stack(tables, wait),
        .site = cl_program_frame(tables, wait->at[first])};
    cl_native_put(&tables->holds, &record, sizeof record);
    tables->holds.count++;
    tables->hold_count++;
    cl_counter_record *counter = cl_program_counter(tables, lock, thread);
    uint64_t length = wait->end_ns - wait->start_ns;
    if (counter != NULL) {
        counter->value[CL_C_BLOCKING_HOLDS]++;
        counter->value[CL_C_HOLD_NS] += length;
        if (length > counter->value[CL_C_MAX_HOLD_NS]) {
            counter->value[CL_C_MAX_HOLD_NS] = length;
        }
    }
}

/* A lock has got its name: releases that came before that are put now, the oldest first. Where older ones
 * had to make room, that one's hold began at no known time: it must not be taken for having lasted since the one before
 * it, and is a nanosecond long. */
static void
cl_program_put_early(cl_program_tables *tables, uint64_t key)
{
    uint32_t bit = cl_program_early_bit(key), all = tables->early_count;
    int has_lost = (int)(tables->early_lost[bit / 64] >> bit % 64 & 1);
    uint32_t count = all < CL_PROGRAM_EARLY ? all : CL_PROGRAM_EARLY;
    for (uint32_t i = 0; i < count; i++) {
        cl_native_wait *release = &tables->early[(all - count + i) % CL_PROGRAM_EARLY];
        if (release->depth != 0 && cl_native_lock_key(release->lock, release->kind) == key) {
            release->start_ns -= has_lost && release->start_ns == release->end_ns;
            has_lost = 0;
            cl_program_put_hold(tables, release);
            release->depth = 0; /* it is put once */
        }
    }
}

static void
cl_program_tables_free(cl_program_tables *tables)
{
    cl_buffer *const buffers[] = {
        &tables->images.records, &tables->codes, &tables->frame_records, &tables->stack_records, &tables->lock_records,
        &tables->thread_records, &tables->waits, &tables->holds, &tables->counters, &tables->file.out};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        cl_buffer_free(buffers[i]);
    }
    munmap(tables, sizeof *tables + CL_PROGRAM_FIRST_BYTES);
}

#endif
