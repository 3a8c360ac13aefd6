/* The files that the kernel has of each thread of this process, in /proc/self/task, read without the C library's
 * functions (which a preloaded layer may watch). For one thread only to ask, the probe's: if it has a table of
 * descriptors of its own it keeps the files open, because opening one costs five times as much as reading it.
 */
#ifndef CL_TASK_FILES_H
#define CL_TASK_FILES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CL_TASK_SYSCALL, CL_TASK_SCHEDSTAT, CL_TASK_FILES };

#define CL_TASKS_KEPT 64 /* direct-mapped by thread */

static struct {
    int keeps;
    struct {
        uint32_t native_id;
        int file[CL_TASK_FILES]; /* descriptor + 1; 0: not open */
    } task[CL_TASKS_KEPT];
} cl_task_kept;

/* Begins with no file open. */
static void
cl_task_begin(int keeps)
{
    memset(&cl_task_kept, 0, sizeof cl_task_kept);
    cl_task_kept.keeps = keeps;
}

/* Where a thread's open files are kept; NULL: they are not. */
static int *
cl_task_place(uint32_t native_id)
{
    if (!cl_task_kept.keeps) {
        return NULL;
    }
    int *file = cl_task_kept.task[native_id % CL_TASKS_KEPT].file;
    if (cl_task_kept.task[native_id % CL_TASKS_KEPT].native_id != native_id) {
        for (int which = 0; which < CL_TASK_FILES; which++) {
            if (file[which] != 0) {
                syscall(SYS_close, file[which] - 1);
                file[which] = 0;
            }
        }
        cl_task_kept.task[native_id % CL_TASKS_KEPT].native_id = native_id;
    }
    return file;
}

static long
cl_task_open(uint32_t native_id, int which)
{
    static const char *const names[] = {[CL_TASK_SYSCALL] = "syscall", [CL_TASK_SCHEDSTAT] = "schedstat"};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", native_id, names[which]);
    return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* Reads one file of /proc/self/task/ID as text; 0 if there is none. */
static int
cl_task_read(uint32_t native_id, int which, char *text, size_t room)
{
    int *kept = cl_task_place(native_id);
    long fd = kept != NULL && kept[which] != 0 ? kept[which] - 1 : cl_task_open(native_id, which);
    if (fd < 0) {
        return 0;
    }
    long bytes = syscall(SYS_pread64, fd, text, room - 1, 0L, 0L, 0L); /* the offset, however it is passed */
    int stays = kept != NULL && bytes > 0; /* else the thread has ended */
    if (kept != NULL) {
        kept[which] = stays ? (int)fd + 1 : 0;
    }
    if (!stays) {
        syscall(SYS_close, fd);
    }
    text[bytes > 0 ? bytes : 0] = 0;
    return bytes > 0;
}

#endif
