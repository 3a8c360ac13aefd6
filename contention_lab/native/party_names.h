/* What tasks are called, for the report on a hang: of the last ones that were made, in a fixed room.
 *
 * Written where a task is first recorded, read by the writer without the GIL. A reader that finds an entry
 * changed meanwhile goes without.
 */
#ifndef CL_PARTY_NAMES_H
#define CL_PARTY_NAMES_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define CL_PARTY_NAMES 2048u /* tasks; a later one takes the place of an earlier */
#define CL_PARTY_WORDS 8u    /* of each name, with its terminator */

typedef struct {
    _Atomic uint64_t owner; /* epoch << 32 | party; 0 while it is being written */
    _Atomic uint64_t word[CL_PARTY_WORDS];
} cl_party_name;

static cl_party_name cl_party_names[CL_PARTY_NAMES];

static void
cl_party_name_put(uint32_t epoch, uint32_t party, const char *text, size_t bytes)
{
    cl_party_name *entry = &cl_party_names[party % CL_PARTY_NAMES];
    uint64_t words[CL_PARTY_WORDS] = {0};
    memcpy(words, text, bytes < sizeof words ? bytes : sizeof words - 1);
    atomic_store_explicit(&entry->owner, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* who sees what follows sees that it changes */
    for (uint32_t i = 0; i < CL_PARTY_WORDS; i++) {
        atomic_store_explicit(&entry->word[i], words[i], memory_order_relaxed);
    }
    atomic_store_explicit(&entry->owner, (uint64_t)epoch << 32 | party, memory_order_release);
}

/* Copies the name of a task; 0 if it is not known any more. */
static int
cl_party_name_read(uint32_t epoch, uint32_t party, char name[CL_PARTY_WORDS * 8])
{
    cl_party_name *entry = &cl_party_names[party % CL_PARTY_NAMES];
    uint64_t owner = (uint64_t)epoch << 32 | party, words[CL_PARTY_WORDS];
    if (atomic_load_explicit(&entry->owner, memory_order_acquire) != owner) {
        return 0;
    }
    for (uint32_t i = 0; i < CL_PARTY_WORDS; i++) {
        words[i] = atomic_load_explicit(&entry->word[i], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
    memcpy(name, words, sizeof words);
    return name[0] != 0 && atomic_load_explicit(&entry->owner, memory_order_relaxed) == owner;
}

#endif
