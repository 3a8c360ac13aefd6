/* exec: another program takes the place of this one. Its recording ends then, with all that it has: only the
 * program that was started is recorded.
 *
 * Whether the call will do that is only known afterwards, when it is too late to write. So the file is looked
 * for first, and where there is none that can be executed the recording goes on. In a child, forked or not yet
 * apart (vfork), nothing is ended.
 */
#ifndef CL_LAYER_EXEC_H
#define CL_LAYER_EXEC_H

#include <limits.h>
#include <stdarg.h>

#include "program_end.h"

static int
cl_exec_is_there(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Whether the shell would find it. */
static int
cl_exec_is_found(const char *name)
{
    char path[PATH_MAX];
    const char *at = getenv("PATH"), *end;
    for (at = at == NULL ? "/bin:/usr/bin" : at;; at = end + 1) {
        end = at + strcspn(at, ":");
        int length = snprintf(path, sizeof path, "%.*s%s%s", (int)(end - at), at, end == at ? "" : "/", name);
        if (length > 0 && (size_t)length < sizeof path && cl_exec_is_there(path)) {
            return 1;
        }
        if (*end == 0) {
            return 0;
        }
    }
}

static void
cl_exec_begins(const char *file, int searches)
{
    int error = errno;
    if (cl_program.process != 0 && getpid() == cl_program.process && file != NULL
        && (searches && strchr(file, '/') == NULL ? cl_exec_is_found(file) : cl_exec_is_there(file))) {
        atomic_store_explicit(&cl_program_execs, 1, memory_order_relaxed);
        cl_program_end_at_once();
    }
    errno = error;
}

#define CL_EXEC(name, searches, parameters, values) \
    CL_PUBLIC int name parameters \
    { \
        cl_exec_begins(file, searches); \
        if (CL_REAL(name) == NULL) { \
            errno = ENOSYS; \
            return -1; \
        } \
        return cl_real.name values; \
    }

CL_EXEC(execv, 0, (const char *file, char *const arguments[]), (file, arguments))
CL_EXEC(execve, 0, (const char *file, char *const arguments[], char *const variables[]),
        (file, arguments, variables))
CL_EXEC(execvp, 1, (const char *file, char *const arguments[]), (file, arguments))
CL_EXEC(execvpe, 1, (const char *file, char *const arguments[], char *const variables[]),
        (file, arguments, variables))

CL_PUBLIC int
fexecve(int fd, char *const arguments[], char *const variables[])
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    cl_exec_begins(path, 0);
    if (CL_REAL(fexecve) == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return cl_real.fexecve(fd, arguments, variables);
}

/* Those with a list of arguments: `call` gets it as an array, and may read on in `list`. */
#define CL_EXEC_LISTED(name, call) \
    CL_PUBLIC int name(const char *file, const char *first, ...) \
    { \
        va_list list; \
        size_t count = 0; \
        va_start(list, first); \
        for (const char *at = first; at != NULL; at = va_arg(list, const char *)) { \
            count++; \
        } \
        va_end(list); \
        char *arguments[count + 1]; \
        va_start(list, first); \
        arguments[0] = (char *)(uintptr_t)first; \
        for (size_t i = 1; i <= count; i++) { \
            arguments[i] = va_arg(list, char *); \
        } \
        int result = call; \
        va_end(list); \
        return result; \
    }

CL_EXEC_LISTED(execl, execv(file, arguments))
CL_EXEC_LISTED(execlp, execvp(file, arguments))
CL_EXEC_LISTED(execle, execve(file, arguments, va_arg(list, char **)))

#endif
