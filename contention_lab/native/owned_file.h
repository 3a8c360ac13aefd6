/* The descriptor of the trace in a process whose program may close any descriptor: a daemon begins by
 * closing all but three, and the number is then given to a file or a connection of its own.
 *
 * So what the number stands for is compared with what it stood for before every use. Between the look and
 * the use lies about a microsecond.
 */
#ifndef CL_OWNED_FILE_H
#define CL_OWNED_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CL_HIGH_DESCRIPTOR 100 /* out of the range that programs count on being next */

typedef struct {
    int fd; /* -1: there is none, and nothing is written */
    dev_t device;
    ino_t inode;
    mode_t type;
    char path[1024]; /* of a regular file; empty if it is not known */
} cl_owned_file;

static int
cl_owned_is_same(const cl_owned_file *file, int fd)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_dev == file->device && now.st_ino == file->inode
           && (now.st_mode & S_IFMT) == file->type;
}

/* Takes over a descriptor. */
static void
cl_owned_take(cl_owned_file *file, int fd)
{
    struct stat about;
    memset(file, 0, sizeof *file);
    file->fd = fd;
    if (fd < 0 || fstat(fd, &about) != 0) {
        return;
    }
    file->device = about.st_dev;
    file->inode = about.st_ino;
    file->type = about.st_mode & S_IFMT;
#if defined(__linux__)
    if (S_ISREG(about.st_mode)) {
        char link[] = "/proc/self/fd/0123456789";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, file->path, sizeof file->path);
        /* one that is cut off is not the path */
        file->path[length > 0 && (size_t)length < sizeof file->path ? length : 0] = 0;
    }
#endif
}

/* Opens the file again if its path still leads to it, as we left it, and nobody else has taken it. */
static int
cl_owned_reopen(cl_owned_file *file, uint64_t size)
{
    int error = errno;
    file->fd = -1;
#if defined(__linux__)
    /* System calls: the C library's functions may be a preloaded layer's. */
    long fd = file->path[0] == 0 ? -1
                                 : syscall(SYS_openat, AT_FDCWD, file->path,
                                           O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        long high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, CL_HIGH_DESCRIPTOR);
        struct stat about;
        if (high >= 0) {
            syscall(SYS_close, fd);
            fd = high;
        }
        if (cl_owned_is_same(file, (int)fd) && fstat((int)fd, &about) == 0
            && (uint64_t)about.st_size == size
            && (syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)) {
            file->fd = (int)fd;
        }
        else {
            syscall(SYS_close, fd);
        }
    }
#else
    (void)size;
#endif
    errno = error;
    return file->fd >= 0;
}

/* Whether the file can be written to, of which `size` bytes have been; opens it again if need be. */
static int
cl_owned_is_ready(cl_owned_file *file, uint64_t size)
{
    return file->fd >= 0 && (cl_owned_is_same(file, file->fd) || cl_owned_reopen(file, size));
}

/* Closes the descriptor if it still is ours. 0, or the errno of that. */
static int
cl_owned_close(cl_owned_file *file)
{
    int error = 0;
    if (file->fd >= 0 && cl_owned_is_same(file, file->fd) && close(file->fd) != 0) {
        error = errno;
    }
    file->fd = -1;
    return error;
}

#endif
