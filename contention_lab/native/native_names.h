/* Names of C++ functions as people write them, by the C++ library's own demangler where the program has one. Others,
 * and those of Rust, stay as the linker has them: who reads the trace has a library for them
 * (trace/native_names.py).
 */
#ifndef CL_NATIVE_NAMES_H
#define CL_NATIVE_NAMES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CL_NAME_BYTES 1024 /* a name that is cut cannot be read */

/* The C++ library's; set when a recording begins, NULL if the program has none. */
static char *(*cl_demangle)(const char *mangled, char *buffer, size_t *size, int *status);

/* Whether it ends as Rust's old style does, with a hash: the C++ library would take it for C++. */
static int
cl_name_is_rusts(const char *name)
{
    size_t length = strlen(name);
    return length > 20 && name[length - 1] == 'E' && memcmp(name + length - 20, "17h", 3) == 0;
}

/* Puts the readable name of a C++ function in the place of the mangled one. */
static void
cl_name_readable(char *name)
{
    int is_cpp = strncmp(name, "_Z", 2) == 0 && !cl_name_is_rusts(name), status = -1;
    char *text = is_cpp && cl_demangle != NULL ? cl_demangle(name, NULL, NULL, &status) : NULL;
    if (text != NULL && status == 0) {
        size_t length = strnlen(text, CL_NAME_BYTES - 1);
        memcpy(name, text, length);
        name[length] = 0;
    }
    free(text);
}

#endif
