/* Writes the tables that records refer to: code objects, frames, stacks, locks, threads, counters.
 * Runs on the writer thread, without a thread state.
 */
#ifndef CL_TABLES_H
#define CL_TABLES_H

#include "chunks.h"
#include "session.h"

/* How many of the interned items this recording has written. */
typedef struct {
    uint32_t codes, frames, stacks;
} cl_written;

/* Sums over all locks and threads, of the blocks that are gone and, at the end, of the others: what can be
 * said of a recording even if its file could not be written. The writer's. */
static struct {
    uint64_t acquires, contended, wait_ns;
} cl_totals;

static void
cl_total_add(cl_block *block)
{
    cl_totals.acquires += atomic_load_explicit(&block->value[CL_C_ACQUIRES], memory_order_relaxed);
    cl_totals.contended += atomic_load_explicit(&block->value[CL_C_CONTENDED], memory_order_relaxed);
    cl_totals.wait_ns += atomic_load_explicit(&block->value[CL_C_WAIT_NS], memory_order_relaxed);
}

static void
cl_total_add_thread(cl_thread *thread)
{
    cl_block *block = atomic_load_explicit(&thread->blocks, memory_order_acquire);
    for (; block != NULL; block = block->next) {
        cl_total_add(block);
    }
}

static void
cl_put(cl_buffer *buffer, const void *data, size_t bytes)
{
    char *at = cl_buffer_extend(buffer, bytes);
    if (at != NULL && bytes > 0) {
        memcpy(at, data, bytes);
    }
}

/* Sends the buffer when it is big enough, so that no chunk comes near the size limit. */
static void
cl_send_if_full(cl_file *file, uint32_t kind, uint32_t record_bytes, cl_buffer *buffer)
{
    if (buffer->used >= CL_CHUNK_PAYLOAD) {
        cl_file_send(file, kind, record_bytes, 0, buffer);
    }
}

static void
cl_write_interned(cl_file *file, cl_written *written, cl_buffer *buffer)
{
    /* Stacks refer to frames, frames to code objects: each count is read before the one it needs, so
     * everything referred to is below the later count. acquire pairs with cl_table_insert(). */
    uint32_t stacks = atomic_load_explicit(&cl_stacks.count, memory_order_acquire);
    uint32_t frames = atomic_load_explicit(&cl_frames.count, memory_order_acquire);
    uint32_t codes = atomic_load_explicit(&cl_codes.count, memory_order_acquire);
    while (written->codes < codes) {
        uint32_t id = ++written->codes;
        const cl_code_item *code = cl_table_item(&cl_codes, id);
        uint32_t head[4] = {id, code->first_line, code->qualname_bytes, code->filename_bytes};
        cl_put(buffer, head, sizeof head);
        cl_put(buffer, code->text, (size_t)code->qualname_bytes + code->filename_bytes);
        buffer->count++;
        cl_send_if_full(file, CL_CODES, 0, buffer);
    }
    cl_file_send(file, CL_CODES, 0, 0, buffer);
    while (written->frames < frames) {
        uint32_t id = ++written->frames;
        const cl_frame_item *frame = cl_table_item(&cl_frames, id);
        cl_frame_record record = {id, frame->code_id, frame->line, frame->lasti};
        cl_put(buffer, &record, sizeof record);
        buffer->count++;
        cl_send_if_full(file, CL_FRAMES, sizeof record, buffer);
    }
    cl_file_send(file, CL_FRAMES, sizeof(cl_frame_record), 0, buffer);
    while (written->stacks < stacks) {
        uint32_t id = ++written->stacks;
        const cl_stack_item *stack = cl_table_item(&cl_stacks, id);
        uint32_t head[2] = {id, stack->depth};
        cl_put(buffer, head, sizeof head);
        cl_put(buffer, stack->frames, (stack->depth & ~CL_STACK_TRUNCATED) * sizeof(uint32_t));
        buffer->count++;
        cl_send_if_full(file, CL_STACKS, 0, buffer);
    }
    cl_file_send(file, CL_STACKS, 0, 0, buffer);
}

/* Writes the locks taken from cl_session.new_locks (newest first), oldest first, and frees the list. */
static void
cl_write_locks(cl_file *file, cl_lock_info *newest, cl_buffer *buffer)
{
    cl_lock_info *ordered = NULL;
    while (newest != NULL) {
        cl_lock_info *next = newest->next;
        newest->next = ordered;
        ordered = newest;
        newest = next;
    }
    while (ordered != NULL) {
        cl_lock_info *next = ordered->next;
        uint32_t head[6] = {ordered->id, ordered->site, ordered->parent, 0,
                            ordered->type_bytes, ordered->name_bytes};
        cl_put(buffer, head, sizeof head);
        cl_put(buffer, ordered->text, (size_t)ordered->type_bytes + ordered->name_bytes);
        buffer->count++;
        cl_send_if_full(file, CL_LOCKS, 0, buffer);
        cl_lock_info_release(ordered);
        ordered = next;
    }
    cl_file_send(file, CL_LOCKS, 0, 0, buffer);
}

static void
cl_write_thread(cl_file *file, cl_thread *thread, cl_buffer *buffer)
{
    uint64_t end = atomic_load_explicit(&thread->end_ns, memory_order_relaxed);
    uint64_t cpu = atomic_load_explicit(&thread->end_cpu_ns, memory_order_relaxed);
    if (end == 0) {
        uint64_t now = cl_other_thread_cpu_ns(thread->native_id);
        cpu = now > thread->cpu_zero ? now - thread->cpu_zero : 0;
        if (now == 0) { /* it has ended since we looked */
            end = atomic_load_explicit(&thread->end_ns, memory_order_acquire);
            cpu = atomic_load_explicit(&thread->end_cpu_ns, memory_order_relaxed);
        }
    }
    if (end == 0) {
        end = cl_slot_over_ns(thread->slot, thread->id);
    }
    /* acquire: pairs with the release after the name is whole. An unnamed thread keeps what the
     * system calls it. */
    (void)atomic_load_explicit(&thread->named, memory_order_acquire);
    uint32_t name_bytes = (uint32_t)strnlen(thread->name, sizeof thread->name);
    uint32_t flags = atomic_load_explicit(&thread->flags, memory_order_relaxed);
    cl_put(buffer, &thread->id, 4);
    cl_put(buffer, &thread->native_id, 4);
    cl_put(buffer, &thread->ident, 8);
    cl_put(buffer, &thread->start_ns, 8);
    cl_put(buffer, &end, 8);
    cl_put(buffer, &cpu, 8);
    cl_put(buffer, &flags, 4);
    cl_put(buffer, &name_bytes, 4);
    cl_put(buffer, thread->name, name_bytes);
    buffer->count++;
    cl_send_if_full(file, CL_THREADS, 0, buffer);
}

/* Writes the tasks taken from cl_session.new_parties and frees the list. */
static void
cl_write_parties(cl_party *party, cl_buffer *buffer)
{
    while (party != NULL) {
        cl_party *next = party->next;
        uint64_t zero = 0;
        uint32_t flags = CL_THREAD_TASK;
        cl_put(buffer, &party->id, 4);
        cl_put(buffer, &party->native_id, 4);
        cl_put(buffer, &zero, 8);
        cl_put(buffer, &party->start_ns, 8);
        cl_put(buffer, &zero, 8);
        cl_put(buffer, &zero, 8);
        cl_put(buffer, &flags, 4);
        cl_put(buffer, &party->name_bytes, 4);
        cl_put(buffer, party->name, party->name_bytes);
        buffer->count++;
        free(party);
        party = next;
    }
}

/* Writes the metadata taken from cl_session.new_meta (newest first), oldest first, and frees the list. */
static void
cl_write_meta(cl_file *file, cl_meta *newest)
{
    cl_meta *ordered = NULL;
    while (newest != NULL) {
        cl_meta *next = newest->next;
        newest->next = ordered;
        ordered = newest;
        newest = next;
    }
    while (ordered != NULL) {
        cl_meta *next = ordered->next;
        cl_file_chunk(file, CL_META, 0, 0, 1, ordered->json, ordered->bytes);
        free(ordered);
        ordered = next;
    }
}

/* Writes the counters of one thread that changed, and frees blocks both sides are done with. */
static void
cl_write_counters(cl_file *file, cl_thread *thread, cl_buffer *buffer)
{
    cl_block *before = NULL;
    cl_block *block = atomic_load_explicit(&thread->blocks, memory_order_acquire);
    while (block != NULL) {
        cl_block *next = block->next;
        if (before != NULL && atomic_load_explicit(&block->unhashed, memory_order_acquire)) {
            before->next = next; /* never the first one: the owner pushes there */
            cl_total_add(block);
            cl_lock_info_release(block->info);
            free(block);
            block = next;
            continue;
        }
        if (!atomic_load_explicit(&block->retired, memory_order_relaxed)) {
            /* acquire, before the counters: once dead, nobody changes them any more */
            uint32_t dead = atomic_load_explicit(&block->info->dead, memory_order_acquire);
            cl_counter_record record = {.lock = block->lock_id, .thread = thread->id};
            uint64_t sum = 0;
            for (int i = 0; i < CL_C_COUNT; i++) {
                record.value[i] = atomic_load_explicit(&block->value[i], memory_order_relaxed);
                sum += record.value[i];
            }
            if (sum != block->written) {
                block->written = sum;
                cl_put(buffer, &record, sizeof record);
                buffer->count++;
                cl_send_if_full(file, CL_COUNTERS, sizeof record, buffer);
            }
            if (dead) {
                atomic_store_explicit(&block->retired, 1, memory_order_release);
            }
        }
        before = block;
        block = next;
    }
}

#endif
