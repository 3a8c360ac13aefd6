/* Writing that sends the program no signal: a write beyond the limit of a file's size, or to a pipe that nobody
 * reads, is one that failed, whatever the program has made of SIGXFSZ and SIGPIPE. Python ignores both.
 */
#ifndef CL_QUIET_WRITE_H
#define CL_QUIET_WRITE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static ssize_t
cl_quiet_write(int fd, const char *data, size_t bytes)
{
    sigset_t ours, before, pending, earlier;
    sigemptyset(&ours);
    sigaddset(&ours, SIGXFSZ);
    sigaddset(&ours, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    sigpending(&earlier);
    ssize_t wrote = write(fd, data, bytes);
    int error = errno, number = error == EFBIG ? SIGXFSZ : error == EPIPE ? SIGPIPE : 0;
    if (wrote < 0 && number != 0 && sigismember(&before, number) == 0 && sigismember(&earlier, number) == 0
        && sigpending(&pending) == 0 && sigismember(&pending, number)) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        sigwait(&one, &number);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return wrote;
}

#endif
