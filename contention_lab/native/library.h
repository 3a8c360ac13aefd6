/* Which code objects belong to a library (the standard library, this package's machinery), so that the
 * place shown for a lock is in the program and not in threading.py. The rule is set from Python once:
 * file names that begin with one of the prefixes and with none of the exceptions. Those that begin with a
 * hidden prefix are left out of stacks altogether: what `record` put into the program's way.
 */
#ifndef CL_LIBRARY_H
#define CL_LIBRARY_H

#include <stdlib.h>
#include <string.h>

#define CL_PREFIXES 32

/* Whose code it is; anything but CL_USER is "library" where only that matters. Import machinery makes
 * no locks for the program, it only stands between a module and whoever imported it. */
enum { CL_USER, CL_LIBRARY, CL_IMPORTING, CL_HIDDEN };

static struct {
    int prefixes, exceptions, hiddens;
    char *prefix[CL_PREFIXES], *exception[CL_PREFIXES], *hidden[CL_PREFIXES];
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
cl_file_owner(const char *filename, size_t bytes)
{
    static char importlib[] = "<frozen importlib";
    static char *const importing[] = {importlib};
    if (cl_begins_with(filename, bytes, cl_library.hidden, cl_library.hiddens)) {
        return CL_HIDDEN;
    }
    if (cl_begins_with(filename, bytes, importing, 1)) {
        return CL_IMPORTING;
    }
    return cl_begins_with(filename, bytes, cl_library.prefix, cl_library.prefixes)
                   && !cl_begins_with(filename, bytes, cl_library.exception, cl_library.exceptions)
               ? CL_LIBRARY
               : CL_USER;
}

#endif
