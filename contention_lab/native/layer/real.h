/* The functions the layer stands before: the next definitions after its own, found once.
 *
 * They are looked up when the layer is initialised, or by the first call where a constructor of another
 * library comes earlier. Looking up may itself allocate memory, and an allocator lock a mutex: those come
 * first, and until they are there the C library's own names for them serve. pthread_cond_* exist in two
 * versions on x86-64, of which dlsym() gives the one of before 2003.
 */
#ifndef CL_LAYER_REAL_H
#define CL_LAYER_REAL_H

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#  define CL_COND_VERSION "GLIBC_2.3.2"
#else
#  define CL_COND_VERSION NULL
#endif

#if __GLIBC_PREREQ(2, 28)
#  include <threads.h>
#  define CL_REAL_C11(X) \
    X(mtx_lock, NULL, int, (mtx_t *)) \
    X(mtx_timedlock, NULL, int, (mtx_t *, const struct timespec *)) \
    X(mtx_trylock, NULL, int, (mtx_t *)) \
    X(mtx_unlock, NULL, int, (mtx_t *)) \
    X(cnd_wait, NULL, int, (cnd_t *, mtx_t *)) \
    X(cnd_timedwait, NULL, int, (cnd_t *, mtx_t *, const struct timespec *)) \
    X(cnd_signal, NULL, int, (cnd_t *)) \
    X(cnd_broadcast, NULL, int, (cnd_t *)) \
    X(thrd_create, NULL, int, (thrd_t *, thrd_start_t, void *)) \
    X(thrd_join, NULL, int, (thrd_t, int *)) \
    X(thrd_yield, NULL, void, (void)) \
    X(thrd_sleep, NULL, int, (const struct timespec *, struct timespec *))
#else
#  define CL_REAL_C11(X)
#endif

#define CL_REAL_FUNCTIONS(X) \
    CL_REAL_C11(X) \
    X(pthread_mutex_lock, NULL, int, (pthread_mutex_t *)) \
    X(pthread_mutex_trylock, NULL, int, (pthread_mutex_t *)) \
    X(pthread_mutex_unlock, NULL, int, (pthread_mutex_t *)) \
    X(pthread_cond_wait, CL_COND_VERSION, int, (pthread_cond_t *, pthread_mutex_t *)) \
    X(pthread_cond_timedwait, CL_COND_VERSION, int, \
      (pthread_cond_t *, pthread_mutex_t *, const struct timespec *)) \
    X(pthread_mutex_timedlock, NULL, int, (pthread_mutex_t *, const struct timespec *)) \
    X(pthread_mutex_clocklock, NULL, int, (pthread_mutex_t *, clockid_t, const struct timespec *)) \
    X(pthread_cond_signal, CL_COND_VERSION, int, (pthread_cond_t *)) \
    X(pthread_cond_broadcast, CL_COND_VERSION, int, (pthread_cond_t *)) \
    X(pthread_cond_clockwait, NULL, int, \
      (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *)) \
    X(pthread_rwlock_rdlock, NULL, int, (pthread_rwlock_t *)) \
    X(pthread_rwlock_tryrdlock, NULL, int, (pthread_rwlock_t *)) \
    X(pthread_rwlock_timedrdlock, NULL, int, (pthread_rwlock_t *, const struct timespec *)) \
    X(pthread_rwlock_wrlock, NULL, int, (pthread_rwlock_t *)) \
    X(pthread_rwlock_trywrlock, NULL, int, (pthread_rwlock_t *)) \
    X(pthread_rwlock_timedwrlock, NULL, int, (pthread_rwlock_t *, const struct timespec *)) \
    X(pthread_rwlock_clockrdlock, NULL, int, (pthread_rwlock_t *, clockid_t, const struct timespec *)) \
    X(pthread_rwlock_clockwrlock, NULL, int, (pthread_rwlock_t *, clockid_t, const struct timespec *)) \
    X(pthread_rwlock_unlock, NULL, int, (pthread_rwlock_t *)) \
    X(pthread_spin_lock, NULL, int, (pthread_spinlock_t *)) \
    X(pthread_spin_trylock, NULL, int, (pthread_spinlock_t *)) \
    X(pthread_spin_unlock, NULL, int, (pthread_spinlock_t *)) \
    X(pthread_barrier_wait, NULL, int, (pthread_barrier_t *)) \
    X(sem_wait, NULL, int, (sem_t *)) \
    X(sem_trywait, NULL, int, (sem_t *)) \
    X(sem_timedwait, NULL, int, (sem_t *, const struct timespec *)) \
    X(sem_clockwait, NULL, int, (sem_t *, clockid_t, const struct timespec *)) \
    X(sem_post, NULL, int, (sem_t *)) \
    X(pthread_create, NULL, int, \
      (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)) \
    X(pthread_join, NULL, int, (pthread_t, void **)) \
    X(pthread_tryjoin_np, NULL, int, (pthread_t, void **)) \
    X(pthread_timedjoin_np, NULL, int, (pthread_t, void **, const struct timespec *)) \
    X(pthread_clockjoin_np, NULL, int, (pthread_t, void **, clockid_t, const struct timespec *)) \
    X(sched_yield, NULL, int, (void)) \
    X(syscall, NULL, long, (long, ...)) \
    X(read, NULL, ssize_t, (int, void *, size_t)) \
    X(readv, NULL, ssize_t, (int, const struct iovec *, int)) \
    X(pread, NULL, ssize_t, (int, void *, size_t, off_t)) \
    X(pread64, NULL, ssize_t, (int, void *, size_t, off64_t)) \
    X(write, NULL, ssize_t, (int, const void *, size_t)) \
    X(writev, NULL, ssize_t, (int, const struct iovec *, int)) \
    X(pwrite, NULL, ssize_t, (int, const void *, size_t, off_t)) \
    X(pwrite64, NULL, ssize_t, (int, const void *, size_t, off64_t)) \
    X(recv, NULL, ssize_t, (int, void *, size_t, int)) \
    X(recvfrom, NULL, ssize_t, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
    X(recvmsg, NULL, ssize_t, (int, struct msghdr *, int)) \
    X(send, NULL, ssize_t, (int, const void *, size_t, int)) \
    X(sendto, NULL, ssize_t, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
    X(sendmsg, NULL, ssize_t, (int, const struct msghdr *, int)) \
    X(sendfile, NULL, ssize_t, (int, int, off_t *, size_t)) \
    X(sendfile64, NULL, ssize_t, (int, int, off64_t *, size_t)) \
    X(poll, NULL, int, (struct pollfd *, nfds_t, int)) \
    X(ppoll, NULL, int, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)) \
    X(select, NULL, int, (int, fd_set *, fd_set *, fd_set *, struct timeval *)) \
    X(pselect, NULL, int, \
      (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
    X(epoll_wait, NULL, int, (int, struct epoll_event *, int, int)) \
    X(epoll_pwait, NULL, int, (int, struct epoll_event *, int, int, const sigset_t *)) \
    X(connect, NULL, int, (int, const struct sockaddr *, socklen_t)) \
    X(accept, NULL, int, (int, struct sockaddr *, socklen_t *)) \
    X(accept4, NULL, int, (int, struct sockaddr *, socklen_t *, int)) \
    X(open, NULL, int, (const char *, int, ...)) \
    X(open64, NULL, int, (const char *, int, ...)) \
    X(openat, NULL, int, (int, const char *, int, ...)) \
    X(openat64, NULL, int, (int, const char *, int, ...)) \
    X(fsync, NULL, int, (int)) \
    X(fdatasync, NULL, int, (int)) \
    X(fcntl, NULL, int, (int, int, ...)) \
    X(fcntl64, NULL, int, (int, int, ...)) \
    X(lockf, NULL, int, (int, int, off_t)) \
    X(lockf64, NULL, int, (int, int, off64_t)) \
    X(flock, NULL, int, (int, int)) \
    X(nanosleep, NULL, int, (const struct timespec *, struct timespec *)) \
    X(clock_nanosleep, NULL, int, (clockid_t, int, const struct timespec *, struct timespec *)) \
    X(usleep, NULL, int, (useconds_t)) \
    X(sleep, NULL, unsigned int, (unsigned int)) \
    X(waitpid, NULL, pid_t, (pid_t, int *, int)) \
    X(wait4, NULL, pid_t, (pid_t, int *, int, struct rusage *)) \
    X(waitid, NULL, int, (idtype_t, id_t, siginfo_t *, int)) \
    X(sigwaitinfo, NULL, int, (const sigset_t *, siginfo_t *)) \
    X(sigtimedwait, NULL, int, (const sigset_t *, siginfo_t *, const struct timespec *)) \
    X(_exit, NULL, void, (int)) \
    X(_Exit, NULL, void, (int)) \
    X(daemon, NULL, int, (int, int)) \
    X(execv, NULL, int, (const char *, char *const *)) \
    X(execve, NULL, int, (const char *, char *const *, char *const *)) \
    X(execvp, NULL, int, (const char *, char *const *)) \
    X(execvpe, NULL, int, (const char *, char *const *, char *const *)) \
    X(fexecve, NULL, int, (int, char *const *, char *const *)) \
    X(getaddrinfo, NULL, int, \
      (const char *, const char *, const struct addrinfo *, struct addrinfo **)) \
    X(__read_chk, NULL, ssize_t, (int, void *, size_t, size_t)) \
    X(__recv_chk, NULL, ssize_t, (int, void *, size_t, size_t, int)) \
    X(__recvfrom_chk, NULL, ssize_t, \
      (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *)) \
    X(__poll_chk, NULL, int, (struct pollfd *, nfds_t, int, size_t))

#define CL_REAL_POINTER(name, version, result, parameters) result(*name) parameters;
static struct {
    CL_REAL_FUNCTIONS(CL_REAL_POINTER)
} cl_real;
#undef CL_REAL_POINTER

/* Of the C library, since ever; only used while the others are being looked up. */
extern int __pthread_mutex_lock(pthread_mutex_t *) __attribute__((weak));
extern int __pthread_mutex_trylock(pthread_mutex_t *) __attribute__((weak));
extern int __pthread_mutex_unlock(pthread_mutex_t *) __attribute__((weak));

static void *
cl_next(const char *name, const char *version)
{
    void *found = version == NULL ? NULL : dlvsym(RTLD_NEXT, name, version);
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

static void
cl_real_find(void)
{
    /* Any thread may do it, and more than one at once: all store the same. */
#define CL_REAL_FIND(name, version, result, parameters) \
    if (cl_real.name == NULL) { \
        *(void **)(void *)&cl_real.name = cl_next(#name, version); \
    }
    CL_REAL_FUNCTIONS(CL_REAL_FIND)
#undef CL_REAL_FIND
}

/* The function, looked up now if it has not been; NULL if it is being looked up by this very call. */
#define CL_REAL(name) (__builtin_expect(cl_real.name != NULL, 1) ? cl_real.name : (cl_real_late(), cl_real.name))

static __thread int cl_looking __attribute__((tls_model("initial-exec")));

static __attribute__((noinline, cold)) void
cl_real_late(void)
{
    if (!cl_looking) {
        int error = errno;
        cl_looking = 1;
        cl_real_find();
        cl_looking = 0;
        errno = error;
    }
}

#endif
