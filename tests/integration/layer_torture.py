"""A C program of 64 threads that use everything at once, and whose result is arithmetic."""

THREADS, TURNS = 64, 300
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define THREADS 64
#define TURNS 300
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, timed = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spinlock;
static pthread_barrier_t barrier;
static sem_t semaphore;
static long by_mutex, by_timed, by_rwlock, by_spinlock, by_semaphore, gone;
static volatile sig_atomic_t signals;

static void on_alarm(int number) { (void)number; signals++; }
static struct timespec in_a_minute(clockid_t clock)
{
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_sec += 60;
    return until;
}
static void *work(void *number)
{
    struct timespec moment = {0, 20000};
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < TURNS; i++) {
        struct timespec until = in_a_minute(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME);
        pthread_mutex_lock(&mutex);
        by_mutex++;
        if (i % 50 == 0) { nanosleep(&moment, NULL); }
        pthread_mutex_unlock(&mutex);
        while (i % 2 ? pthread_mutex_clocklock(&timed, CLOCK_MONOTONIC, &until)
                     : pthread_mutex_timedlock(&timed, &until)) { }
        by_timed++;
        pthread_mutex_unlock(&timed);
        if (i % 8 == 0) { pthread_rwlock_wrlock(&rwlock); by_rwlock++; }
        else { pthread_rwlock_rdlock(&rwlock); }
        pthread_rwlock_unlock(&rwlock);
        while (pthread_spin_trylock(&spinlock)) { sched_yield(); }
        by_spinlock++;
        pthread_spin_unlock(&spinlock);
        while (sem_wait(&semaphore)) { }
        __atomic_fetch_add(&by_semaphore, 1, __ATOMIC_RELAXED);
        sem_post(&semaphore);
    }
    pthread_mutex_lock(&mutex);
    gone++;
    if (gone % 2) { pthread_cond_broadcast(&cond); } else { pthread_cond_signal(&cond); }
    pthread_mutex_unlock(&mutex);
    return number;
}
int main(void)
{
    pthread_t thread[THREADS];
    long joined = 0;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGUSR2, &action, NULL);
    pthread_spin_init(&spinlock, 0);
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&semaphore, 0, 3);
    for (long i = 0; i < THREADS; i++) { pthread_create(&thread[i], NULL, work, (void *)i); }
    for (int i = 0; i < 200; i++) {
        struct timespec moment = {0, 100000};
        pthread_kill(thread[i % THREADS], SIGUSR2);
        if (i % 50 == 0) {
            pid_t child = fork();
            if (child == 0) { _exit(0); }
            waitpid(child, NULL, 0);
        }
        nanosleep(&moment, NULL);
    }
    pthread_mutex_lock(&mutex);
    while (gone < THREADS) { pthread_cond_wait(&cond, &mutex); }
    pthread_mutex_unlock(&mutex);
    for (long i = 0; i < THREADS; i++) {
        void *value;
        joined += pthread_join(thread[i], &value) == 0 && (long)value == i;
    }
    printf("%ld %ld %ld %ld %ld %ld\\n", by_mutex, by_timed, by_rwlock, by_spinlock, by_semaphore,
           joined);
    return signals == 0;
}
"""
RESULT = "19200 19200 2432 19200 19200 64\n"
