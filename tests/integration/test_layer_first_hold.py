"""The first hold that others waited for is recorded, though its release is told before the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layer_programs import functions, load_program, needs_compiler, needs_layer, record_program

from contention_lab.trace import WaitKind

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

LOCKS = 20
PROGRAM = """
#include <pthread.h>
#include <time.h>
static pthread_mutex_t mutexes[20];
static pthread_barrier_t barrier;
static void *wait_for_each(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&mutexes[i]);
        pthread_mutex_unlock(&mutexes[i]);
    }
    return unused;
}
__attribute__((noinline)) void hold(pthread_mutex_t *mutex)
{
    struct timespec nap = {0, 2000000};
    pthread_mutex_lock(mutex);
    pthread_barrier_wait(&barrier);
    do { /* until the C library knows that the lock is waited for */
        nanosleep(&nap, NULL);
    } while (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) != 2);
    pthread_mutex_unlock(mutex);
    nanosleep(&nap, NULL);
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 20; i++) { pthread_mutex_init(&mutexes[i], NULL); }
    pthread_create(&thread, NULL, wait_for_each, NULL);
    for (int i = 0; i < 20; i++) { hold(&mutexes[i]); }
    pthread_join(thread, NULL);
    return 0;
}
"""


def test_of_locks_that_are_waited_for_once_that_one_hold_is_there(tmp_path: Path) -> None:
    assert record_program(tmp_path, PROGRAM)[0] == 0
    trace = load_program(tmp_path)

    waits = trace.waits[trace.waits["kind"] == WaitKind.CONTENTION]
    holds = [hold for hold in trace.holds if "hold" in functions(trace, hold["stack"])]
    assert len(waits) == LOCKS
    assert sorted(int(hold["lock"]) for hold in holds) == sorted(waits["lock"].tolist())
    assert len({int(hold["lock"]) for hold in holds}) == LOCKS
