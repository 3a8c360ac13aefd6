/* Names of C++ and Rust functions as people write them: by the C++ library's own demangler where the program
 * has one, else the path out of a Rust name, old style (`_ZN`) or new (`_R`). What is not understood stays.
 */
#ifndef CL_NATIVE_NAMES_H
#define CL_NATIVE_NAMES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CL_NAME_BYTES 256

/* The C++ library's; set when a recording begins, NULL if the program has none. */
static char *(*cl_demangle)(const char *mangled, char *buffer, size_t *size, int *status);

/* Adds a part to a path; 0 if there is no room for it. */
static int
cl_path_add(char *path, size_t *used, const char *part, size_t length)
{
    size_t separator = *used > 0 ? 2 : 0;
    if (*used + separator + length >= CL_NAME_BYTES) {
        return 0;
    }
    memcpy(path + *used, "::", separator);
    memcpy(path + *used + separator, part, length);
    *used += separator + length;
    path[*used] = 0;
    return 1;
}

/* Reads a length and that many characters; 0 if they are not there. */
static const char *
cl_name_part(const char **at, size_t *length, int is_old)
{
    *length = 0;
    while (**at >= '0' && **at <= '9' && *length < CL_NAME_BYTES) {
        *length = *length * 10 + (size_t)(*(*at)++ - '0');
    }
    *at += !is_old && **at == '_' ? 1 : 0; /* before a name that begins with a digit or an underscore */
    if (*length == 0 || strnlen(*at, *length) < *length) {
        return NULL;
    }
    const char *part = *at;
    *at += *length;
    return part;
}

/* The path in a Rust name; 0 if there is none. Types, numbers and references to earlier parts are left out. */
static int
cl_rust_path(char *path, const char *name)
{
    int is_old = strncmp(name, "_ZN", 3) == 0;
    size_t used = 0, length;
    const char *at = name + (is_old ? 3 : 2);
    while (*at != 0 && *at != '.' && !(is_old && *at == 'E')) {
        if (*at >= '0' && *at <= '9') {
            const char *part = cl_name_part(&at, &length, is_old);
            if (part == NULL || (length > 0 && !(is_old && length == 17 && part[0] == 'h')
                                 && !cl_path_add(path, &used, part, length))) {
                return 0;
            }
        }
        else if (!is_old && (*at == 's' || *at == 'B')) { /* a number in letters and digits, up to "_" */
            const char *end = strchr(at, '_');
            at = end == NULL ? at + 1 : end + 1;
        }
        else if (is_old) {
            return 0;
        }
        else {
            at += *at == 'N' && at[1] != 0 ? 2 : 1; /* with the kind of name that follows */
        }
    }
    return used > 0;
}

/* Puts the readable name in the place of a mangled one. */
static void
cl_name_readable(char *name)
{
    char path[CL_NAME_BYTES];
    int is_cpp = strncmp(name, "_Z", 2) == 0, status = -1;
    char *text = is_cpp && cl_demangle != NULL ? cl_demangle(name, NULL, NULL, &status) : NULL;
    if (text != NULL && status == 0) {
        size_t length = strnlen(text, CL_NAME_BYTES - 1);
        length -= length > 19 && memcmp(text + length - 19, "::h", 3) == 0 ? 19 : 0; /* Rust's hash */
        memcpy(name, text, length);
        name[length] = 0;
    }
    else if ((is_cpp || strncmp(name, "_R", 2) == 0) && cl_rust_path(path, name)) {
        memcpy(name, path, CL_NAME_BYTES);
    }
    free(text);
}

#endif
