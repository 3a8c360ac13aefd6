/* Names native waits and writes them: the writer's side of native_waits.h. Each address is looked up once, when
 * first seen; each lock is named after the library and the function that was first seen to wait for it.
 */
#ifndef CL_NATIVE_TABLES_H
#define CL_NATIVE_TABLES_H

#include "native_images.h"
#include "native_python.h"

typedef struct {
    cl_numbers locks, frames, stacks;
    cl_native_images images;
    cl_buffer lock_records, frame_records, stack_records, waits;
} cl_native_tables;

static void
cl_native_put_names(cl_buffer *buffer, const cl_symbol *symbol)
{
    uint32_t bytes[2] = {(uint32_t)strlen(symbol->symbol), (uint32_t)strlen(symbol->image)};
    cl_native_put(buffer, bytes, sizeof bytes);
    cl_native_put(buffer, symbol->symbol, bytes[0]);
    cl_native_put(buffer, symbol->image, bytes[1]);
    buffer->count++;
}

static uint32_t
cl_native_frame(cl_native_tables *tables, uintptr_t address)
{
    int is_new;
    uint32_t id = cl_number(&tables->frames, address + (address == 0), &is_new);
    if (is_new) {
        cl_symbol symbol;
        cl_symbol_find(&symbol, address);
        cl_native_image(&tables->images, &symbol, symbol.image);
        uint32_t head[2] = {id, symbol.is_within ? 0 : CL_NATIVE_NEAREST};
        cl_native_put(&tables->frame_records, head, sizeof head);
        cl_native_put(&tables->frame_records, &symbol.offset, sizeof symbol.offset);
        cl_native_put_names(&tables->frame_records, &symbol);
    }
    return id;
}

static uint32_t
cl_native_stack(cl_native_tables *tables, const cl_native_wait *wait)
{
    uint64_t key = wait->depth;
    uint32_t frames[CL_NATIVE_DEPTH];
    for (uint32_t i = 0; i < wait->depth; i++) {
        frames[i] = cl_native_frame(tables, wait->at[i]);
        key = cl_native_mix(key ^ frames[i]) + i;
    }
    int is_new;
    uint32_t id = cl_number(&tables->stacks, key + (key == 0), &is_new);
    if (is_new) {
        uint32_t head[2] = {id, wait->depth};
        cl_native_put(&tables->stack_records, head, sizeof head);
        cl_native_put(&tables->stack_records, frames, wait->depth * sizeof *frames);
        tables->stack_records.count++;
    }
    return id;
}

static uint32_t
cl_native_lock(cl_native_tables *tables, const cl_native_wait *wait)
{
    int is_new;
    uint32_t id = cl_number(&tables->locks, cl_native_lock_key(wait->lock, wait->kind), &is_new);
    if (is_new) {
        cl_symbol symbol;
        cl_symbol_find(&symbol, wait->at[0]);
        cl_native_image(&tables->images, &symbol, symbol.image);
        uint32_t head[2] = {id, wait->kind};
        uint64_t address = wait->lock;
        cl_native_put(&tables->lock_records, head, sizeof head);
        cl_native_put(&tables->lock_records, &address, sizeof address);
        cl_native_put_names(&tables->lock_records, &symbol);
    }
    return id;
}

/* Empties the ring. `tables` may be NULL: there was no memory for them. */
static void
cl_native_drain(cl_native_tables *tables)
{
    const cl_native_wait *wait;
    for (uint32_t i = 0; i < CL_NATIVE_SLOTS && (wait = cl_native_peek()) != NULL; i++) {
        if (tables != NULL) {
            cl_native_wait_record record = {
                .start_ns = wait->start_ns, .end_ns = wait->end_ns, .thread = wait->thread,
                .native_id = wait->native_id, .holder = wait->holder,
                .stack = cl_native_python_stack(wait),
                .flags = wait->flags, .lock = cl_native_lock(tables, wait),
                .native_stack = wait->depth > 1 ? cl_native_stack(tables, wait) : 0};
            cl_native_put(&tables->waits, &record, sizeof record);
            tables->waits.count++;
        }
        cl_native_pop();
    }
}

static void
cl_native_send(cl_file *file, cl_native_tables *tables)
{
    if (tables != NULL) {
        cl_file_send(file, CL_NATIVE_IMAGES, 0, 0, &tables->images.records);
        cl_file_send(file, CL_NATIVE_LOCKS, 0, 0, &tables->lock_records);
        cl_file_send(file, CL_NATIVE_FRAMES, 0, 0, &tables->frame_records);
        cl_file_send(file, CL_NATIVE_STACKS, 0, 0, &tables->stack_records);
        cl_file_send(file, CL_NATIVE_WAITS, sizeof(cl_native_wait_record), 0, &tables->waits);
    }
}

static void
cl_native_tables_free(cl_native_tables *tables)
{
    if (tables != NULL) {
        cl_buffer_free(&tables->images.records);
        cl_buffer_free(&tables->lock_records);
        cl_buffer_free(&tables->frame_records);
        cl_buffer_free(&tables->stack_records);
        cl_buffer_free(&tables->waits);
        free(tables);
    }
}

#endif
