/* Whether a function belongs to the standard library of C++ or Rust, by its name: then the place that counts is where the
 * program calls it. Of a Rust name the path is read, old style (`_ZN`) or new (`_R`).
 */
#ifndef CL_LAYER_STANDARD_NAMES_H
#define CL_LAYER_STANDARD_NAMES_H

#include "../native_names.h"

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

/* Whether one of the parts is in it; with `first`, at its beginning. */
static int
cl_name_has(const char *name, const char *const *parts, size_t count, int first)
{
    for (size_t i = 0; i < count; i++) {
        if (first ? strncmp(name, parts[i], strlen(parts[i])) == 0 : strstr(name, parts[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* Whether a function belongs to the standard library of C++ or Rust. One that runs what it is given, a thread's function
 * say, does not: the compiler puts that in line, and then nothing of the program's own is left that calls it. */
static int
cl_name_is_standard(const char *name)
{
    static const char *const libraries[] = {"std::", "core::", "alloc::", "_$LT$std..", "_$LT$core..", "_$LT$alloc.."};
    static const char *const runners[] = {"::_M_run(", "::_M_invoke(", "::__rust_begin_short_backtrace", "::call_once"};
    char path[CL_NAME_BYTES];
    int is_rust = strncmp(name, "_R", 2) == 0 || cl_name_is_rusts(name);
    int is_mangled = is_rust || strncmp(name, "_ZN", 3) == 0;
    const char *readable = is_mangled && cl_rust_path(path, name) ? path : name;
    size_t known = is_rust ? sizeof libraries / sizeof *libraries : 1; /* a C++ program may have a `core` of its own */
    return cl_name_has(readable, libraries, known, 1)
           && !cl_name_has(readable, runners, sizeof runners / sizeof *runners, 0);
}

/* Whether it is one of the functions through which GCC's libraries reach those of threads; where the compiler has not
 * put them in line, each file has its own, by its C or its C++ name.
 */
static int
cl_name_is_gthread(const char *name)
{
    if (strncmp(name, "_ZL", 3) == 0) {
        name += 3;
        name += strspn(name, "0123456789");
    }
    return strncmp(name, "__gthread", 9) == 0;
}

#endif
