/* The report on a hang, as text: who holds what, who waits where, and who waits for whom in a ring. Written
 * by the writer thread, without the GIL, from what threads have published and from interned stacks.
 */
#ifndef CL_HANG_REPORT_H
#define CL_HANG_REPORT_H

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#include "gil_probe.h"
#include "open_waits.h"
#include "party_names.h"
#include "standstill.h"

#define CL_REPORT_FRAMES 20

static void __attribute__((format(printf, 2, 3)))
cl_say(cl_buffer *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) {
        cl_put(text, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
}

/* "function (file:line)", or with `full` as the lines of a traceback have it. */
static void
cl_say_frame(cl_buffer *text, uint32_t id, int full)
{
    if (id == 0 || id > atomic_load_explicit(&cl_frames.count, memory_order_acquire)) {
        cl_say(text, "an unknown place");
        return;
    }
    const cl_frame_item *frame = cl_table_item(&cl_frames, id);
    const cl_code_item *code = cl_table_item(&cl_codes, frame->code_id);
    const char *file = code->text + code->qualname_bytes;
    uint32_t bytes = code->filename_bytes;
    if (full) {
        cl_say(text, "    File \"%.*s\", line %u, in %.*s\n", (int)bytes, file, frame->line,
               (int)code->qualname_bytes, code->text);
        return;
    }
    for (uint32_t i = bytes; i-- > 0;) {
        if (file[i] == '/' || file[i] == '\\') {
            file += i + 1;
            bytes -= i + 1;
            break;
        }
    }
    cl_say(text, "%.*s (%.*s:%u)", (int)code->qualname_bytes, code->text, (int)bytes, file, frame->line);
}

static void
cl_say_stack(cl_buffer *text, uint32_t id)
{
    if (id == 0 || id > atomic_load_explicit(&cl_stacks.count, memory_order_acquire)) {
        return;
    }
    const cl_stack_item *stack = cl_table_item(&cl_stacks, id);
    uint32_t depth = stack->depth & ~CL_STACK_TRUNCATED;
    for (uint32_t at = 0; at < depth && at < CL_REPORT_FRAMES; at++) {
        cl_say_frame(text, stack->frames[at], 1);
    }
    if (depth > CL_REPORT_FRAMES) {
        cl_say(text, "    ... and %u more\n", depth - CL_REPORT_FRAMES);
    }
}

static void
cl_say_lock(cl_buffer *text, uint32_t lock_id)
{
    const cl_lock_info *info = cl_info_of(lock_id);
    if (info == NULL) {
        cl_say(text, "lock #%u", lock_id);
        return;
    }
    const char *name = info->text + info->type_bytes;
    if (info->name_bytes > 0) {
        cl_say(text, "%.*s \"%.*s\"", (int)info->type_bytes, info->text, (int)info->name_bytes, name);
    }
    else {
        cl_say(text, "%.*s #%u", (int)info->type_bytes, info->text, lock_id);
    }
    if (info->site != 0 && !cl_is_join(info)) {
        cl_say(text, " made at ");
        cl_say_frame(text, info->site, 0);
    }
}

static void
cl_say_thread(cl_buffer *text, const cl_thread *thread)
{
    (void)atomic_load_explicit(&thread->named, memory_order_acquire);
    cl_say(text, "\"%.*s\" (%u)", (int)strnlen(thread->name, sizeof thread->name), thread->name,
           thread->native_id);
}

static double
cl_seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0.0;
}

/* A thread or a task, by its id in the recording. */
static void
cl_say_party(cl_buffer *text, uint32_t id)
{
    const cl_thread *thread = cl_thread_by_id(id);
    if (thread != NULL) {
        cl_say_thread(text, thread);
        return;
    }
    char name[CL_PARTY_WORDS * 8];
    if (cl_party_name_read(atomic_load_explicit(&cl_epoch, memory_order_relaxed), id, name)) {
        cl_say(text, "task \"%s\"", name);
        return;
    }
    cl_say(text, "task #%u", id);
}

/* Who had permits of a lock when somebody last began to wait for one. */
static void
cl_say_permits(cl_buffer *text, uint32_t lock, uint64_t now)
{
    cl_out_copy out;
    if (!cl_out_read(atomic_load_explicit(&cl_epoch, memory_order_relaxed), lock, &out)) {
        return;
    }
    for (uint32_t i = 0; i < out.count && i < CL_MOST_OUT; i++) {
        cl_say(text, "    a permit was with ");
        cl_say_party(text, (uint32_t)(out.what[i] >> 32));
        if (out.since[i] != 0) {
            cl_say(text, ", taken %.1f s ago", cl_seconds(out.since[i], now));
        }
        cl_say(text, " in ");
        cl_say_frame(text, (uint32_t)out.what[i], 0);
        cl_say(text, "\n");
    }
    if (out.count > CL_MOST_OUT) {
        cl_say(text, "    ... and %u more were out\n", out.count - CL_MOST_OUT);
    }
}

/* What a thread waits for, and where. */
static void
cl_report_wait(cl_buffer *text, const cl_wait_record *wait, uint64_t now)
{
    cl_say(text, "  waits for ");
    cl_say_lock(text, wait->lock);
    cl_say(text, ", for %.1f s", cl_seconds(wait->start_ns, now));
    cl_thread *awaited = cl_awaited(wait);
    if (awaited != NULL) {
        cl_say(text, wait->kind == CL_CONTENTION ? ", held by " : ", which is ");
        cl_say_thread(text, awaited);
    }
    cl_say(text, "\n");
    cl_say_permits(text, wait->lock, now);
    cl_say_stack(text, wait->stack);
}

/* The tasks of event loops that wait. */
static void
cl_report_tasks(cl_buffer *text, uint64_t now)
{
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    for (uint32_t at = 0; at < CL_OPEN_WAITS; at++) {
        cl_wait_record wait;
        if (cl_open_wait_read(at, epoch, &wait)) {
            cl_say_party(text, wait.thread);
            cl_say(text, "\n  waits for ");
            cl_say_lock(text, wait.lock);
            cl_say(text, ", for %.1f s", cl_seconds(wait.start_ns, now));
            if (wait.holder != 0) {
                cl_say(text, ", held by ");
                cl_say_party(text, wait.holder);
            }
            cl_say(text, "\n");
            cl_say_permits(text, wait.lock, now);
            cl_say_stack(text, wait.stack);
        }
    }
}

/* Where a thread that does not wait was when another one began to wait for it. */
static void
cl_report_sight(cl_buffer *text, const cl_thread *thread)
{
    for (cl_thread *other = cl_first_thread(); other != NULL; other = other->next) {
        cl_wait_record wait;
        if (cl_wait_of(other, &wait) && wait.kind == CL_CONTENTION && wait.holder == thread->id
            && wait.holder_stack != 0) {
            cl_say(text, "  when ");
            cl_say_thread(text, other);
            cl_say(text, " began to wait for it, it was at\n");
            cl_say_stack(text, wait.holder_stack);
            return;
        }
    }
}

static void
cl_report_thread(cl_buffer *text, cl_thread *thread, uint64_t now)
{
    cl_wait_record wait;
    int waits = cl_wait_of(thread, &wait);
    uint32_t count = atomic_load_explicit(&thread->held_count, memory_order_acquire);
    if (!waits && count == 0) {
        return;
    }
    cl_say(text, "thread ");
    cl_say_thread(text, thread);
    cl_say(text, "\n");
    for (uint32_t at = 0; at < count && at < CL_MOST_HELD; at++) {
        uint64_t what = cl_held_what(thread, at);
        uint64_t since = atomic_load_explicit(&thread->held[at].since, memory_order_relaxed);
        cl_say(text, "  holds ");
        cl_say_lock(text, (uint32_t)(what >> 32));
        cl_say(text, ", for %.1f s, taken in ", cl_seconds(since, now));
        cl_say_frame(text, (uint32_t)what, 0);
        cl_say(text, "\n");
    }
    if (waits) {
        cl_report_wait(text, &wait, now);
    }
    else {
        cl_report_sight(text, thread);
    }
}

static void
cl_report_ring(cl_buffer *text, cl_thread *const *ring, unsigned count)
{
    if (count == 1) {
        cl_say(text, "deadlock: ");
        cl_say_thread(text, ring[0]);
        cl_say(text, " waits for itself\n");
        return;
    }
    cl_say(text, "deadlock: ");
    for (unsigned i = 0; i < count; i++) {
        cl_say_thread(text, ring[i]);
        cl_say(text, " waits for ");
    }
    cl_say_thread(text, ring[0]);
    cl_say(text, "\n");
}

/* What an event loop has been doing for longer than `after_ns`. */
static void
cl_report_loop(cl_buffer *text, uint64_t now, uint64_t after_ns)
{
    uint64_t since = atomic_load_explicit(&cl_step_since, memory_order_relaxed);
    cl_thread *thread = cl_thread_by_id(atomic_load_explicit(&cl_step_thread, memory_order_relaxed));
    if (since == 0 || now < since + after_ns || thread == NULL) {
        return;
    }
    int is_seen = atomic_load_explicit(&cl_step_seen, memory_order_acquire) == since;
    uint32_t stack = is_seen ? atomic_load_explicit(&cl_step_stack, memory_order_relaxed) : 0;
    cl_say(text, "the event loop of ");
    cl_say_thread(text, thread);
    cl_say(text, " has been in one callback for %.1f s%s\n", cl_seconds(since, now),
           stack == 0 ? "" : "; it was last seen at");
    cl_say_stack(text, stack);
}

/* All threads that hold or wait, the GIL, and every ring, each once. */
static void
cl_report_all(cl_buffer *text, uint64_t now)
{
    cl_thread *ring[CL_MOST_RING];
    for (cl_thread *thread = cl_first_thread(); thread != NULL; thread = thread->next) {
        if (cl_is_live(thread)) {
            cl_report_thread(text, thread, now);
        }
    }
    cl_report_tasks(text, now);
    int locked;
    const void *holder;
    if (cl_gil_read(&locked, &holder) && locked) {
        cl_thread *thread = cl_thread_by_id(cl_gil_holder(holder));
        cl_say(text, "the GIL is held");
        if (thread != NULL) {
            cl_say(text, " by ");
            cl_say_thread(text, thread);
        }
        cl_say(text, "\n");
    }
    for (cl_thread *thread = cl_first_thread(); thread != NULL; thread = thread->next) {
        unsigned count = cl_ring_of(thread, now, ring);
        int told = 0; /* a ring is told by its thread with the lowest id */
        for (unsigned i = 0; i < count; i++) {
            told |= ring[i]->id < thread->id;
        }
        if (count > 0 && !told) {
            cl_report_ring(text, ring, count);
        }
    }
}

/* Writes the text to a descriptor, unless nobody reads it: the recording must go on. */
static void
cl_report_send(int fd, const cl_buffer *text)
{
    size_t done = 0;
    while (done < text->used) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        size_t part = text->used - done < 4096 ? text->used - done : 4096;
        ssize_t wrote = poll(&ready, 1, 200) == 1 ? write(fd, text->data + done, part) : -1;
        if (wrote <= 0) {
            return;
        }
        done += (size_t)wrote;
    }
}

#endif
