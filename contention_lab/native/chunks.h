/* Chunks on their way to the file: a growing buffer, and a file that may fail.
 *
 * A failed write (disk full, file system gone) is remembered and nothing more is written; the recording
 * goes on, so that counters can still be reported.
 */
#ifndef CL_CHUNKS_H
#define CL_CHUNKS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crc32.h"
#include "owned_file.h"
#include "quiet_write.h"
#include "schema.h"

#define CL_CHUNK_PAYLOAD (1u << 20) /* payloads are split about here */

typedef struct {
    char *data;
    size_t used, room;
    uint32_t count; /* records */
} cl_buffer;

typedef struct {
    cl_owned_file owned;
    int error; /* errno of the first failed write, 0 none; EBADF: the program closed the file */
    uint32_t sequence;
    uint64_t bytes_written;
    cl_buffer out; /* whole chunks, not yet written */
} cl_file;

/* Room for `bytes` more, or NULL. */
static char *
cl_buffer_extend(cl_buffer *buffer, size_t bytes)
{
    if (buffer->used + bytes > buffer->room) {
        size_t room = buffer->room == 0 ? 4096 : buffer->room;
        while (room < buffer->used + bytes) {
            room *= 2;
        }
        char *data = realloc(buffer->data, room);
        if (data == NULL) {
            return NULL;
        }
        buffer->data = data;
        buffer->room = room;
    }
    char *at = buffer->data + buffer->used;
    buffer->used += bytes;
    return at;
}

static void
cl_buffer_free(cl_buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

static void
cl_file_flush(cl_file *file)
{
    size_t done = 0;
    while (done < file->out.used && file->error == 0 && file->owned.fd >= 0) {
        if (!cl_owned_is_ready(&file->owned, file->bytes_written + done)) {
            file->error = EBADF;
            break;
        }
        ssize_t wrote = cl_quiet_write(file->owned.fd, file->out.data + done, file->out.used - done);
        if (wrote > 0) {
            done += (size_t)wrote;
        }
        else if (wrote == 0 || errno != EINTR) {
            file->error = wrote == 0 ? ENOSPC : errno;
        }
    }
    file->bytes_written += done;
    file->out.used = 0;
}

/* Appends one chunk. `thread` is 0 but for kinds that are per thread. */
static void
cl_file_chunk(cl_file *file, uint32_t kind, uint32_t record_bytes, uint32_t thread, uint32_t count,
              const void *payload, size_t bytes)
{
    if (file->error != 0) {
        return;
    }
    size_t padded = (bytes + 7u) & ~(size_t)7u;
    char *at = cl_buffer_extend(&file->out, sizeof(cl_chunk_header) + padded);
    if (at == NULL) {
        file->error = ENOMEM;
        return;
    }
    cl_chunk_header header = {
        .magic = CL_CHUNK_MAGIC, .kind = (uint16_t)kind, .record_bytes = (uint16_t)record_bytes,
        .payload_bytes = (uint32_t)bytes, .count = count, .thread = thread,
        .sequence = file->sequence++};
    uint32_t crc = cl_crc32(0, &header, offsetof(cl_chunk_header, crc32));
    header.crc32 = cl_crc32(crc, payload, bytes);
    memcpy(at, &header, sizeof header);
    memcpy(at + sizeof header, payload, bytes);
    memset(at + sizeof header + bytes, 0, padded - bytes);
    if (file->out.used > CL_CHUNK_PAYLOAD) {
        cl_file_flush(file);
    }
}

/* Sends a buffer of records as one chunk, or as several if they are many, and empties it. */
static void
cl_file_send(cl_file *file, uint32_t kind, uint32_t record_bytes, uint32_t thread, cl_buffer *buffer)
{
    const char *at = buffer->data;
    uint32_t count = buffer->count;
    if (record_bytes != 0) {
        uint32_t most = CL_CHUNK_PAYLOAD / record_bytes;
        for (; count > most; count -= most, at += (size_t)most * record_bytes) {
            cl_file_chunk(file, kind, record_bytes, thread, most, at, (size_t)most * record_bytes);
        }
    }
    if (count > 0) {
        size_t sent = (size_t)(at - buffer->data);
        cl_file_chunk(file, kind, record_bytes, thread, count, at, buffer->used - sent);
    }
    buffer->used = 0;
    buffer->count = 0;
}

#endif
