/* The files of native code that stacks speak of, each with its build id: the number that the linker gave to what it
 * made, by which one knows later whether a file of that name is still the same. Not all have one.
 */
#ifndef CL_NATIVE_IMAGES_H
#define CL_NATIVE_IMAGES_H

#include "native_numbers.h"
#include "native_symbols.h"

typedef struct {
    cl_numbers known;
    cl_buffer records;
} cl_native_images;

/* Notes the file of a symbol under a path, the first time. */
static void
cl_native_image(cl_native_images *images, const cl_symbol *symbol, const char *path)
{
    uint64_t key = 1;
    for (const char *at = path; *at != 0; at++) {
        key = cl_native_mix(key ^ (unsigned char)*at);
    }
    int is_new;
    cl_number(&images->known, key + (key == 0), &is_new);
    if (is_new) {
        char hex[2 * CL_BUILD_ID_BYTES + 1] = "";
        for (uint32_t i = 0; i < symbol->build_id_bytes; i++) {
            snprintf(hex + 2 * i, 3, "%02x", symbol->build_id[i]);
        }
        uint32_t bytes[2] = {(uint32_t)strlen(path), (uint32_t)strlen(hex)};
        cl_native_put(&images->records, bytes, sizeof bytes);
        cl_native_put(&images->records, path, bytes[0]);
        cl_native_put(&images->records, hex, bytes[1]);
        images->records.count++;
    }
}

#endif
