/* Numbers for things that have none: addresses, stacks, pairs. For the writer alone.
 */
#ifndef CL_NATIVE_NUMBERS_H
#define CL_NATIVE_NUMBERS_H

#include "chunks.h"

#define CL_NAMES 16384u /* of each kind: a power of two; of more, the rest is 0, unknown */

/* Numbers for 64-bit keys: ids begin with 1. */
typedef struct {
    uint64_t key[CL_NAMES];
    uint32_t id[CL_NAMES];
    uint32_t count;
} cl_numbers;

static void
cl_native_put(cl_buffer *buffer, const void *data, size_t bytes)
{
    char *at = cl_buffer_extend(buffer, bytes);
    if (at != NULL && bytes > 0) {
        memcpy(at, data, bytes);
    }
}

static uint64_t
cl_native_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xBF58476D1CE4E5B9u;
    value ^= value >> 27;
    value *= 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

/* One address may be of several kinds of lock, one after the other. */
static inline uint64_t
cl_native_lock_key(uint64_t address, uint32_t kind)
{
    return address * 16 + kind;
}

/* The number of a key; 0 if it has none. */
static inline uint32_t
cl_number_of(const cl_numbers *numbers, uint64_t key)
{
    uint32_t at = (uint32_t)cl_native_mix(key) % CL_NAMES;
    for (; numbers->key[at] != 0; at = (at + 1) % CL_NAMES) {
        if (numbers->key[at] == key) {
            return numbers->id[at];
        }
    }
    return 0;
}

/* The number of a key (not 0), and whether it is new; 0 if there is no room for it. */
static uint32_t
cl_number(cl_numbers *numbers, uint64_t key, int *is_new)
{
    uint32_t at = (uint32_t)cl_native_mix(key) % CL_NAMES;
    *is_new = 0;
    for (; numbers->key[at] != 0; at = (at + 1) % CL_NAMES) {
        if (numbers->key[at] == key) {
            return numbers->id[at];
        }
    }
    if (numbers->count >= CL_NAMES / 2) {
        return 0;
    }
    *is_new = 1;
    numbers->key[at] = key;
    return numbers->id[at] = ++numbers->count;
}

#endif
