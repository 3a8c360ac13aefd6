"""`record ./program`: how often each lock is taken, also where nobody waits for it."""

from __future__ import annotations

import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from layer_programs import load_program, needs_compiler, needs_layer, record_program

from contention_lab.trace import Trace, WaitKind, not_seen

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

THREE_THREADS = """
#include <pthread.h>
#include <semaphore.h>
#define TURNS 20000
static pthread_mutex_t own[3], never_free = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static sem_t done;
static void *work(void *number)
{
    pthread_mutex_t *mutex = &own[(long)number];
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(mutex);
        if (i % 4 == 0) { pthread_mutex_trylock(mutex); }
        pthread_mutex_unlock(mutex);
        if (i % 10 == 0) { pthread_rwlock_rdlock(&rwlock); pthread_rwlock_unlock(&rwlock); }
    }
    sem_post(&done);
    return NULL;
}
int main(void)
{
    pthread_t thread[3];
    sem_init(&done, 0, 0);
    pthread_spin_init(&spinlock, 0);
    for (long i = 0; i < 3; i++) {
        pthread_mutex_init(&own[i], NULL);
        pthread_create(&thread[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < 500; i++) { pthread_spin_lock(&spinlock); pthread_spin_unlock(&spinlock); }
    for (int i = 0; i < 3; i++) { sem_wait(&done); }
    for (int i = 0; i < 3; i++) { pthread_join(thread[i], NULL); }
    return 0;
}
"""


def totals(trace: Trace, field: str) -> dict[str, int]:
    """Return the sums of a counter by type of lock."""
    sums: Counter[str] = Counter()
    for counter in trace.counters:
        sums[trace.lock(int(counter["lock"])).type] += int(counter[field])
    return dict(sums)


def test_acquires_and_failed_tries_are_counted_to_the_last_one(tmp_path: Path) -> None:
    assert record_program(tmp_path, THREE_THREADS) == (0, "", "")
    trace = load_program(tmp_path)

    mutexes = trace.counters[
        [trace.lock(int(lock)).type == "pthread_mutex" for lock in trace.counters["lock"]]
    ]
    acquires = totals(trace, "acquires")

    assert mutexes["acquires"].tolist() == [20_000] * 3
    assert mutexes["failed_tries"].tolist() == [5_000] * 3
    assert len(set(mutexes["thread"].tolist())) == len(set(mutexes["lock"].tolist())) == 3
    assert acquires["pthread_rwlock"] == 3 * 2_000
    assert acquires["pthread_spinlock"] == 500
    assert {lock.site.function for lock in trace.locks.values() if lock.site} == {"work", "main"}


def test_a_semaphore_that_others_post_to_is_a_signal_and_no_lock(tmp_path: Path) -> None:
    record_program(tmp_path, THREE_THREADS)
    trace = load_program(tmp_path)

    of_semaphore = [w for w in trace.waits if trace.lock(int(w["lock"])).type == "sem"]

    assert of_semaphore
    assert {int(wait["kind"]) for wait in of_semaphore} == {WaitKind.COORDINATION}


def test_a_semaphore_that_each_gives_back_is_a_lock(tmp_path: Path) -> None:
    program = """
    #include <pthread.h>
    #include <semaphore.h>
    #include <time.h>
    static sem_t permit;
    static void *work(void *nothing)
    {
        struct timespec t = {0, 1000000};
        for (int i = 0; i < 10; i++) { sem_wait(&permit); nanosleep(&t, NULL); sem_post(&permit); }
        return nothing;
    }
    int main(void)
    {
        pthread_t thread[3];
        sem_init(&permit, 0, 1);
        for (int i = 0; i < 3; i++) { pthread_create(&thread[i], NULL, work, NULL); }
        for (int i = 0; i < 3; i++) { pthread_join(thread[i], NULL); }
        return 0;
    }
    """
    record_program(tmp_path, program)
    trace = load_program(tmp_path)

    of_semaphore = [w for w in trace.waits if trace.lock(int(w["lock"])).type == "sem"]

    assert len(of_semaphore) > 3
    assert {int(wait["kind"]) for wait in of_semaphore} == {WaitKind.CONTENTION}
    assert any(hold["end_ns"] > hold["start_ns"] for hold in trace.holds)


def test_more_threads_one_after_the_other_than_there_are_tables(tmp_path: Path) -> None:
    program = """
    #include <pthread.h>
    #include <time.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static void *work(void *nothing)
    {
        for (int i = 0; i < 200; i++) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); }
        return nothing;
    }
    int main(void)
    {
        pthread_t thread;
        struct timespec t = {0, 1000000};
        for (int i = 0; i < 1200; i++) {
            pthread_create(&thread, NULL, work, NULL);
            pthread_join(thread, NULL);
            nanosleep(&t, NULL);
        }
        return 0;
    }
    """
    record_program(tmp_path, program)

    assert totals(load_program(tmp_path), "acquires") == {"pthread_mutex": 1200 * 200}


MANY_THREADS = """
#include <pthread.h>
#define THREADS 600
static pthread_mutex_t own[THREADS]; /* never waited for */
static pthread_barrier_t barrier;
static void *work(void *number)
{
    pthread_mutex_lock(&own[(long)number]);
    pthread_mutex_unlock(&own[(long)number]);
    pthread_barrier_wait(&barrier);
    return NULL;
}
int main(void)
{
    static pthread_t thread[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) { pthread_create(&thread[i], &small, work, (void *)i); }
    for (int i = 0; i < THREADS; i++) { pthread_join(thread[i], NULL); }
    return 0;
}
"""


def test_threads_that_cannot_be_counted_are_said(tmp_path: Path) -> None:
    assert record_program(tmp_path, MANY_THREADS)[0] == 0

    said = not_seen(load_program(tmp_path))

    assert sum(line.startswith("88 times thread: so many at once") for line in said) == 1


def test_a_program_with_openmp_is_said_to_have_locks_that_are_not_seen(tmp_path: Path) -> None:
    source = """
    #include <omp.h>
    int main(void)
    {
        int total = 0;
        #pragma omp parallel num_threads(3)
        {
            #pragma omp critical
            total++;
        }
        return total - 3;
    }
    """
    try:
        status = record_program(tmp_path, source, "-fopenmp")[0]
    except subprocess.CalledProcessError:
        pytest.skip("no OpenMP")

    assert status == 0
    assert any(line.startswith("locks of OpenMP") for line in not_seen(load_program(tmp_path)))
