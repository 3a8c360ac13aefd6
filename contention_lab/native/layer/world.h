/* The calls that block on the world: timed while something is recorded and the calling thread holds a lock
 * that is, else passed on. Whether and since when, the recorder knows (world_begin, world_end).
 *
 * They are cancellation points as before: nothing here has to be undone if a thread ends in one of them.
 */
#ifndef CL_LAYER_WORLD_H
#define CL_LAYER_WORLD_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>

#include "attached.h"
#include "real.h"

static inline uint64_t
cl_world_begin(const cl_layer_table *table, uint32_t call)
{
    return __builtin_expect(table == NULL, 1) ? 0 : table->world_begin(call);
}

/* Calls the real function, or fails if it is called in the midst of the look-up for it. */
#define CL_CALL(name, failure, arguments) (CL_REAL(name) == NULL ? (errno = ENOSYS, failure) : cl_real.name arguments)

#define CL_WORLD_BODY(result, name, failure, call, arguments) \
    const cl_layer_table *table = cl_attached(); \
    uint64_t begun = cl_world_begin(table, call); \
    result returned = CL_CALL(name, failure, arguments); \
    if (__builtin_expect(begun != 0, 0)) { \
        table->world_end(begun, call); \
    } \
    return returned;

#define CL_WORLD(result, name, failure, call, parameters, arguments) \
    CL_PUBLIC result name parameters; \
    CL_PUBLIC result name parameters \
    { \
        CL_WORLD_BODY(result, name, failure, call, arguments) \
    }

CL_WORLD(ssize_t, read, -1, CL_ON_READ, (int fd, void *data, size_t size), (fd, data, size))
CL_WORLD(ssize_t, readv, -1, CL_ON_READ, (int fd, const struct iovec *parts, int count),
         (fd, parts, count))
CL_WORLD(ssize_t, pread, -1, CL_ON_READ, (int fd, void *data, size_t size, off_t at),
         (fd, data, size, at))
CL_WORLD(ssize_t, pread64, -1, CL_ON_READ, (int fd, void *data, size_t size, off64_t at),
         (fd, data, size, at))
CL_WORLD(ssize_t, __read_chk, -1, CL_ON_READ, (int fd, void *data, size_t size, size_t room),
         (fd, data, size, room))
CL_WORLD(ssize_t, write, -1, CL_ON_WRITE, (int fd, const void *data, size_t size), (fd, data, size))
CL_WORLD(ssize_t, writev, -1, CL_ON_WRITE, (int fd, const struct iovec *parts, int count),
         (fd, parts, count))
CL_WORLD(ssize_t, pwrite, -1, CL_ON_WRITE, (int fd, const void *data, size_t size, off_t at),
         (fd, data, size, at))
CL_WORLD(ssize_t, pwrite64, -1, CL_ON_WRITE, (int fd, const void *data, size_t size, off64_t at),
         (fd, data, size, at))
CL_WORLD(ssize_t, recv, -1, CL_ON_RECV, (int fd, void *data, size_t size, int flags),
         (fd, data, size, flags))
CL_WORLD(ssize_t, __recv_chk, -1, CL_ON_RECV,
         (int fd, void *data, size_t size, size_t room, int flags), (fd, data, size, room, flags))
CL_WORLD(ssize_t, recvfrom, -1, CL_ON_RECV,
         (int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length),
         (fd, data, size, flags, from, length))
CL_WORLD(ssize_t, __recvfrom_chk, -1, CL_ON_RECV,
         (int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from,
          socklen_t *length),
         (fd, data, size, room, flags, from, length))
CL_WORLD(ssize_t, recvmsg, -1, CL_ON_RECV, (int fd, struct msghdr *message, int flags),
         (fd, message, flags))
CL_WORLD(ssize_t, send, -1, CL_ON_SEND, (int fd, const void *data, size_t size, int flags),
         (fd, data, size, flags))
CL_WORLD(ssize_t, sendto, -1, CL_ON_SEND,
         (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length),
         (fd, data, size, flags, to, length))
CL_WORLD(ssize_t, sendmsg, -1, CL_ON_SEND, (int fd, const struct msghdr *message, int flags),
         (fd, message, flags))
CL_WORLD(ssize_t, sendfile, -1, CL_ON_SENDFILE, (int out, int in, off_t *at, size_t size),
         (out, in, at, size))
CL_WORLD(ssize_t, sendfile64, -1, CL_ON_SENDFILE, (int out, int in, off64_t *at, size_t size),
         (out, in, at, size))
CL_WORLD(int, poll, -1, CL_ON_POLL, (struct pollfd *fds, nfds_t count, int timeout),
         (fds, count, timeout))
CL_WORLD(int, __poll_chk, -1, CL_ON_POLL, (struct pollfd *fds, nfds_t count, int timeout, size_t room),
         (fds, count, timeout, room))
CL_WORLD(int, ppoll, -1, CL_ON_POLL,
         (struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
         (fds, count, timeout, mask))
CL_WORLD(int, select, -1, CL_ON_SELECT,
         (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
         (count, in, out, except, timeout))
CL_WORLD(int, pselect, -1, CL_ON_SELECT,
         (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
          const sigset_t *mask),
         (count, in, out, except, timeout, mask))
CL_WORLD(int, epoll_wait, -1, CL_ON_EPOLL_WAIT,
         (int fd, struct epoll_event *events, int count, int timeout), (fd, events, count, timeout))
CL_WORLD(int, epoll_pwait, -1, CL_ON_EPOLL_WAIT,
         (int fd, struct epoll_event *events, int count, int timeout, const sigset_t *mask),
         (fd, events, count, timeout, mask))
CL_WORLD(int, connect, -1, CL_ON_CONNECT, (int fd, const struct sockaddr *to, socklen_t length),
         (fd, to, length))
CL_WORLD(int, accept, -1, CL_ON_ACCEPT, (int fd, struct sockaddr *from, socklen_t *length),
         (fd, from, length))
CL_WORLD(int, accept4, -1, CL_ON_ACCEPT,
         (int fd, struct sockaddr *from, socklen_t *length, int flags), (fd, from, length, flags))
CL_WORLD(int, fsync, -1, CL_ON_FSYNC, (int fd), (fd))
CL_WORLD(int, fdatasync, -1, CL_ON_FSYNC, (int fd), (fd))
CL_WORLD(int, lockf, -1, CL_ON_FCNTL_LOCK, (int fd, int command, off_t size), (fd, command, size))
CL_WORLD(int, lockf64, -1, CL_ON_FCNTL_LOCK, (int fd, int command, off64_t size), (fd, command, size))
CL_WORLD(int, flock, -1, CL_ON_FLOCK, (int fd, int operation), (fd, operation))
CL_WORLD(int, nanosleep, -1, CL_ON_SLEEP, (const struct timespec *time, struct timespec *rest),
         (time, rest))
CL_WORLD(int, clock_nanosleep, ENOSYS, CL_ON_SLEEP,
         (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),
         (clock, flags, time, rest))
CL_WORLD(int, usleep, -1, CL_ON_SLEEP, (useconds_t time), (time))
CL_WORLD(unsigned int, sleep, time, CL_ON_SLEEP, (unsigned int time), (time))
CL_WORLD(pid_t, waitpid, -1, CL_ON_WAITPID, (pid_t pid, int *status, int options),
         (pid, status, options))
CL_WORLD(pid_t, wait4, -1, CL_ON_WAITPID,
         (pid_t pid, int *status, int options, struct rusage *usage), (pid, status, options, usage))
CL_WORLD(int, waitid, -1, CL_ON_WAITPID, (idtype_t type, id_t id, siginfo_t *info, int options),
         (type, id, info, options))
CL_WORLD(int, sigwaitinfo, -1, CL_ON_SIGWAIT, (const sigset_t *set, siginfo_t *info), (set, info))
CL_WORLD(int, sigtimedwait, -1, CL_ON_SIGWAIT,
         (const sigset_t *set, siginfo_t *info, const struct timespec *timeout), (set, info, timeout))
CL_WORLD(int, getaddrinfo, EAI_SYSTEM, CL_ON_GETADDRINFO,
         (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
         (node, service, hints, found))

/* The mode is there only if the flags ask for it; what is read without being there is passed on unused. */
#define CL_WORLD_OPEN(name, parameters, arguments) \
    CL_PUBLIC int name parameters; \
    CL_PUBLIC int name parameters \
    { \
        mode_t mode = 0; \
        if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
            va_list more; \
            va_start(more, flags); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        CL_WORLD_BODY(int, name, -1, CL_ON_OPEN, arguments) \
    }

CL_WORLD_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
CL_WORLD_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
CL_WORLD_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
CL_WORLD_OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

/* Commands take nothing, an int or a pointer: a register in each case, as in the C library itself. */
#define CL_WORLD_FCNTL(name) \
    CL_PUBLIC int name(int fd, int command, ...); \
    CL_PUBLIC int name(int fd, int command, ...) \
    { \
        va_list more; \
        va_start(more, command); \
        void *argument = va_arg(more, void *); \
        va_end(more); \
        if (command != F_SETLKW && command != F_OFD_SETLKW) { \
            return CL_CALL(name, -1, (fd, command, argument)); \
        } \
        CL_WORLD_BODY(int, name, -1, CL_ON_FCNTL_LOCK, (fd, command, argument)) \
    }

CL_WORLD_FCNTL(fcntl)
CL_WORLD_FCNTL(fcntl64)

#endif
