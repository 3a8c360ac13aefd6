"""`record ./program`: releases are timed when they happen, whoever gets the core afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layer_programs import functions, load_program, needs_compiler, needs_layer, record_program

from contention_lab.trace import WaitKind

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

ONE_CORE = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static volatile unsigned long total;
static void *wait_for_it(void *unused)
{
    struct timespec t;
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    do { /* keeps the core that it has got from whoever let it in */
        for (int i = 0; i < 1000; i++) { total += i; }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_nsec < 50000000);
    return unused;
}
__attribute__((noinline)) void hold(void)
{
    struct timespec nap = {0, 10000000};
    struct sched_param idle = {0};
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&barrier);
    do { /* until the C library knows that the lock is waited for */
        nanosleep(&nap, NULL);
    } while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != 2);
    sched_setscheduler(0, SCHED_IDLE, &idle); /* of this thread */
    pthread_mutex_unlock(&mutex);
    total++;
}
int main(void)
{
    pthread_t thread;
    cpu_set_t one;
    sched_getaffinity(0, sizeof one, &one);
    for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &one) && found++) { CPU_CLR(cpu, &one); }
    }
    sched_setaffinity(0, sizeof one, &one);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, wait_for_it, NULL);
    hold();
    pthread_join(thread, NULL);
    return 0;
}
"""
PASSING_READERS = """
#include <pthread.h>
#include <unistd.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *change(void *unused)
{
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    return unused;
}
__attribute__((noinline)) static void *look_up(void *unused)
{
    for (int i = 0; i < READERS; i++) {
        pthread_rwlock_rdlock(&lock);
        usleep(300);
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}
int main(void)
{
    pthread_t writer, reader;
    pthread_rwlock_rdlock(&lock);
    pthread_create(&writer, NULL, change, NULL);
    do { /* until the C library knows that a writer waits */
        usleep(1000);
    } while ((__atomic_load_n(&lock.__data.__readers, __ATOMIC_RELAXED) & 2) == 0);
    pthread_create(&reader, NULL, look_up, NULL);
    pthread_join(reader, NULL);
    pthread_rwlock_unlock(&lock);
    pthread_join(writer, NULL);
    return 0;
}
"""


def test_all_that_pass_a_writer_who_waits_are_recorded(tmp_path: Path) -> None:
    # A third of a second: meanwhile the lock gets its name from who counts how often it was taken.
    program = PASSING_READERS.replace("READERS", "1200")
    assert record_program(tmp_path, program)[0] == 0
    trace = load_program(tmp_path)

    passed = [hold for hold in trace.holds if "look_up" in functions(trace, hold["stack"])]

    assert len(passed) == 1200


def test_who_lets_another_in_and_loses_the_core_to_it_has_released_before(tmp_path: Path) -> None:
    assert record_program(tmp_path, ONE_CORE)[0] == 0
    trace = load_program(tmp_path)

    [wait] = trace.waits[trace.waits["kind"] == WaitKind.CONTENTION]
    [held] = [hold for hold in trace.holds if "hold" in functions(trace, hold["stack"])]

    assert held["end_ns"] <= wait["end_ns"]
