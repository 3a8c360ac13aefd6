/* The calls of the C library that block on the world, by the numbers they have in a trace. Append only: the
 * numbers are part of the format (FORMAT.md, kind 15).
 */
#ifndef CL_WORLD_CALLS_H
#define CL_WORLD_CALLS_H

enum {
    CL_ON_OTHER, CL_ON_READ, CL_ON_WRITE, CL_ON_RECV, CL_ON_SEND, CL_ON_SENDFILE, CL_ON_POLL,
    CL_ON_SELECT, CL_ON_EPOLL_WAIT, CL_ON_CONNECT, CL_ON_ACCEPT, CL_ON_OPEN, CL_ON_FSYNC,
    CL_ON_FCNTL_LOCK, CL_ON_FLOCK, CL_ON_SLEEP, CL_ON_WAITPID, CL_ON_GETADDRINFO, CL_ON_SIGWAIT
};

#endif
