/* Which code objects belong to a library (the standard library, this package's machinery), so that the
 * place shown for a lock is in the program and not in threading.py. The rule is set from Python once:
 * file names that begin with one of the prefixes and with none of the exceptions.
 */
#ifndef CL_LIBRARY_H
#define CL_LIBRARY_H

#include <stdlib.h>
#include <string.h>

#define CL_PREFIXES 32

static struct {
    int prefixes, exceptions;
    char *prefix[CL_PREFIXES], *exception[CL_PREFIXES];
} cl_library;

static int
cl_begins_with(const char *text, size_t bytes, char *const *prefix, int count)
{
    for (int i = 0; i < count; i++) {
        size_t length = strlen(prefix[i]);
        if (bytes >= length && memcmp(text, prefix[i], length) == 0) {
            return 1;
        }
    }
    return 0;
}

static int
cl_is_library_file(const char *filename, size_t bytes)
{
    return cl_begins_with(filename, bytes, cl_library.prefix, cl_library.prefixes)
           && !cl_begins_with(filename, bytes, cl_library.exception, cl_library.exceptions);
}

#endif
