/* Writing that sends the program no signal: a write beyond the limit of a file's size, or to a pipe that nobody
 * reads, is one that failed, whatever the program has made of SIGXFSZ and SIGPIPE. Python ignores both.
 */
#ifndef CL_QUIET_WRITE_H
#define CL_QUIET_WRITE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

typedef struct {
    sigset_t before, earlier; /* blocked, and pending, when it began */
} cl_quiet;

/* From here on the calling thread gets none of these signals. */
static void
cl_quiet_begin(cl_quiet *quiet)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGXFSZ);
    sigaddset(&ours, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &ours, &quiet->before);
    sigpending(&quiet->earlier);
}

/* Takes back what a write of ours has sent. */
static void
cl_quiet_take(const cl_quiet *quiet, int number)
{
    sigset_t pending;
    if (sigismember(&quiet->before, number) == 0 && sigismember(&quiet->earlier, number) == 0
        && sigpending(&pending) == 0 && sigismember(&pending, number)) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        sigwait(&one, &number);
    }
}

static void
cl_quiet_end(const cl_quiet *quiet, int has_failed)
{
    if (has_failed) {
        cl_quiet_take(quiet, SIGXFSZ);
        cl_quiet_take(quiet, SIGPIPE);
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

static ssize_t
cl_quiet_write(int fd, const char *data, size_t bytes)
{
    cl_quiet quiet;
    cl_quiet_begin(&quiet);
    ssize_t wrote = write(fd, data, bytes);
    int error = errno;
    cl_quiet_end(&quiet, wrote < 0);
    errno = error;
    return wrote;
}

#endif
