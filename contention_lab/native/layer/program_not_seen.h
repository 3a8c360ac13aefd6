/* What the recording of a program that is not Python could not see, as in the metadata of a Python: children that it
 * has made, a program that has taken its place, acquires by threads for which there was no table to count in, and
 * runtimes whose locks wait in the kernel without the C library.
 */
#ifndef CL_LAYER_PROGRAM_NOT_SEEN_H
#define CL_LAYER_PROGRAM_NOT_SEEN_H

#include <link.h>

#include "program_tables.h"
#include "tally.h"

static _Atomic uint32_t cl_program_forks; /* by the program, so far */
static _Atomic uint32_t cl_program_execs; /* 1: it is about to be replaced by another one */

typedef struct {
    char text[1024];
    size_t length;
} cl_not_seen;

static void
cl_not_seen_add(cl_not_seen *list, const char *what, const char *why, uint32_t count)
{
    char note[400];
    int length = snprintf(note, sizeof note, "%s{\"what\": \"%s\", \"why\": \"%s\", \"count\": %u}",
                          list->length > 0 ? ", " : "", what, why, count);
    if (count > 0 && length > 0 && (size_t)length < sizeof note && list->length + (size_t)length < sizeof list->text) {
        memcpy(list->text + list->length, note, (size_t)length + 1);
        list->length += (size_t)length;
    }
}

/* libgomp, libomp, libiomp5: their critical sections and barriers are their own. */
static int
cl_program_find_openmp(struct dl_phdr_info *image, size_t size, void *found)
{
    (void)size;
    const char *name = image->dlpi_name == NULL ? NULL : strrchr(image->dlpi_name, '/');
    *(uint32_t *)found |= name != NULL
                          && (strncmp(name, "/libgomp", 8) == 0 || strncmp(name, "/libomp.", 8) == 0
                              || strncmp(name, "/libiomp", 8) == 0);
    return 0;
}

static void
cl_program_put_not_seen(cl_file *file)
{
    cl_not_seen list = {.length = 0};
    uint32_t openmp = 0;
    dl_iterate_phdr(cl_program_find_openmp, &openmp);
    cl_not_seen_add(&list, "forked child process",
                    "of a program that is not Python only the first process is recorded",
                    atomic_load_explicit(&cl_program_forks, memory_order_relaxed));
    cl_not_seen_add(&list, "program that took its place (exec)", "only the program that was started is recorded",
                    atomic_load_explicit(&cl_program_execs, memory_order_relaxed));
    cl_not_seen_add(&list, "thread", "so many at once that those acquires of it that found a lock free are not counted",
                    atomic_load_explicit(&cl_tallies.refused, memory_order_relaxed));
    cl_not_seen_add(&list, "locks of OpenMP", "its runtime has critical sections and barriers of its own", openmp);
    if (list.length > 0) {
        char text[sizeof list.text + 32];
        snprintf(text, sizeof text, "{\"not_seen\": [%s]}", list.text);
        cl_file_chunk(file, CL_META, 0, 0, 1, text, strlen(text));
    }
}

#endif
