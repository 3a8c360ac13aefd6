"""Every function of the C library by which threads wait is seen, and does as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from layer_programs import compiled, functions, length_ns, needs_compiler, needs_layer, run_recorded

from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

pytestmark = [needs_layer, needs_compiler]

LIBRARY = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static volatile int is_held, release;

static void nap(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, NULL); }
static struct timespec later(clockid_t clock)
{
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_sec += 60;
    return until;
}
static void *holder(void *what)
{
    switch ((int)(long)what) {
    case 0: pthread_mutex_lock(&mutex); break;
    case 1: pthread_rwlock_wrlock(&rwlock); break;
    case 2: pthread_rwlock_rdlock(&rwlock); break;
    case 3: sem_wait(&semaphore); break;
    }
    is_held = 1;
    while (!release) { nap(1); }
    nap(5);
    switch ((int)(long)what) {
    case 0: pthread_mutex_unlock(&mutex); break;
    case 1: case 2: pthread_rwlock_unlock(&rwlock); break;
    case 3: sem_post(&semaphore); break;
    }
    return NULL;
}
/* The function's wait, while another thread holds the lock for some milliseconds more. */
#define AGAINST(name, what, wait, leave) \\
    int name(void) \\
    { \\
        pthread_t other; \\
        struct timespec real = later(CLOCK_REALTIME), mono = later(CLOCK_MONOTONIC); \\
        (void)real; (void)mono; \\
        sem_init(&semaphore, 0, 1); \\
        is_held = release = 0; \\
        pthread_create(&other, NULL, holder, (void *)(long)what); \\
        while (!is_held) { nap(1); } \\
        release = 1; \\
        int result = wait; \\
        leave; \\
        pthread_join(other, NULL); \\
        return result; \\
    }
AGAINST(mutex_lock, 0, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
AGAINST(mutex_timedlock, 0, pthread_mutex_timedlock(&mutex, &real), pthread_mutex_unlock(&mutex))
AGAINST(mutex_clocklock, 0, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono),
        pthread_mutex_unlock(&mutex))
AGAINST(rdlock, 1, pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
AGAINST(timedrdlock, 1, pthread_rwlock_timedrdlock(&rwlock, &real), pthread_rwlock_unlock(&rwlock))
AGAINST(clockrdlock, 1, pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &mono),
        pthread_rwlock_unlock(&rwlock))
AGAINST(wrlock, 2, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
AGAINST(timedwrlock, 2, pthread_rwlock_timedwrlock(&rwlock, &real), pthread_rwlock_unlock(&rwlock))
AGAINST(clockwrlock, 1, pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono),
        pthread_rwlock_unlock(&rwlock))
AGAINST(semaphore_wait, 3, sem_wait(&semaphore), sem_post(&semaphore))
AGAINST(semaphore_timedwait, 3, sem_timedwait(&semaphore, &real), sem_post(&semaphore))
AGAINST(semaphore_clockwait, 3, sem_clockwait(&semaphore, CLOCK_MONOTONIC, &mono),
        sem_post(&semaphore))

static void *idle(void *nothing) { nap(10); return nothing; }
int join(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, idle, (void *)7);
    int error = pthread_join(thread, &result);
    return error != 0 || result != (void *)7;
}
int timedjoin(void)
{
    pthread_t thread;
    struct timespec real = later(CLOCK_REALTIME);
    pthread_create(&thread, NULL, idle, NULL);
    return pthread_timedjoin_np(thread, NULL, &real);
}
int yield_until(void)
{
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    do { sched_yield(); clock_gettime(CLOCK_MONOTONIC, &now); }
    while (now.tv_sec < until.tv_sec
           || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
    return 0;
}
static volatile int ready;
static void *sleeper(void *nothing)
{
    pthread_mutex_lock(&mutex);
    is_held = 1;
    while (!ready) { pthread_cond_wait(&cond, &mutex); }
    pthread_mutex_unlock(&mutex);
    return nothing;
}
int broadcast(void)
{
    pthread_t thread;
    is_held = ready = 0;
    pthread_create(&thread, NULL, sleeper, NULL);
    while (!is_held) { nap(1); }
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_mutex_unlock(&mutex);
    int result = pthread_cond_broadcast(&cond);
    pthread_join(thread, NULL);
    return result;
}

/* What is refused, and at once. */
void refused(void)
{
    struct timespec bad = {1, 2000000000}, past = {0, 0};
    pthread_t self = pthread_self();
    sem_init(&semaphore, 0, 1);
    errno = 0;
    printf("%d ", sem_timedwait(&semaphore, &bad)); printf("%d ", errno);
    printf("%d ", sem_clockwait(&semaphore, 1234, &past)); printf("%d ", errno);
    printf("%d ", sem_timedwait(&semaphore, &past));
    errno = 0;
    printf("%d ", sem_timedwait(&semaphore, &past)); printf("%d ", errno);
    printf("%d ", pthread_mutex_clocklock(&mutex, 1234, &past));
    printf("%d ", pthread_mutex_timedlock(&mutex, &bad));
    printf("%d ", pthread_mutex_unlock(&mutex));
    printf("%d ", pthread_rwlock_timedrdlock(&rwlock, &bad));
    printf("%d ", pthread_rwlock_clockwrlock(&rwlock, 1234, &past));
    printf("%d ", pthread_rwlock_wrlock(&rwlock));
    printf("%d ", pthread_rwlock_rdlock(&rwlock));
    printf("%d ", pthread_rwlock_timedwrlock(&rwlock, &past));
    printf("%d ", pthread_rwlock_unlock(&rwlock));
    printf("%d ", pthread_join(self, NULL));
    printf("%d ", sched_yield());
    printf("%d\\n", errno);
    fflush(stdout);
}

/* A thread that is cancelled in a wait, or had been before it came there. */
static int cleaned;
static void clean(void *nothing) { (void)nothing; cleaned++; }
static void *waits_to_be_cancelled(void *what)
{
    pthread_cleanup_push(clean, NULL);
    if ((long)what == 0) { sem_wait(&semaphore); }
    if ((long)what == 1) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        is_held = 1;
        while (!release) { sched_yield(); }
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        sem_wait(&semaphore);  /* free */
    }
    pthread_cleanup_pop(0);
    return NULL;
}
static void *joins(void *thread)
{
    pthread_cleanup_push(clean, NULL);
    pthread_join(*(pthread_t *)thread, NULL);
    pthread_cleanup_pop(0);
    return NULL;
}
void cancelled(void)
{
    pthread_t thread, other;
    void *result;
    int value = -1;
    sem_init(&semaphore, 0, 0);
    pthread_create(&thread, NULL, waits_to_be_cancelled, (void *)0);
    nap(5);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%d %d ", result == PTHREAD_CANCELED, cleaned);

    sem_post(&semaphore);
    is_held = release = 0;
    pthread_create(&thread, NULL, waits_to_be_cancelled, (void *)1);
    while (!is_held) { nap(1); }
    pthread_cancel(thread);
    release = 1;
    pthread_join(thread, &result);
    sem_getvalue(&semaphore, &value);
    printf("%d %d %d ", result == PTHREAD_CANCELED, cleaned, value);

    is_held = release = 0;
    pthread_create(&other, NULL, holder, (void *)9);
    pthread_create(&thread, NULL, joins, &other);
    nap(5);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    release = 1;
    printf("%d %d %d\\n", result == PTHREAD_CANCELED, cleaned, pthread_join(other, NULL));
    fflush(stdout);
}
"""
CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
def call():
    return [getattr(library, name)() for name in sys.argv[2:]]
print(*call(), flush=True)
"""


def recorded(folder: Path, *names: str) -> Trace:
    done = run_recorded(folder, CALL, compiled(folder, LIBRARY, "libmany"), *names)
    assert (done.status, done.err) == (0, "")
    assert done.out.split() == ["0"] * len(names)
    return done.trace


def events(trace: Trace, kind: NativeKind, symbol: str, *, releases: bool = False) -> list[Any]:
    """Return the waits, or the releases, of a kind in which a function is the innermost."""
    kinds = {lock.id for lock in trace.native.locks.values() if lock.kind is kind}
    found = []
    for event in trace.native_waits:
        stack = trace.native_stack(int(event["native_stack"]))
        lock = trace.native.locks.get(int(event["lock"]))
        name = stack[0].symbol if stack else lock.symbol if lock else ""
        is_release = bool(event["flags"] & int(NativeWaitFlag.RELEASE))
        if int(event["lock"]) in kinds and name == symbol and is_release == releases:
            found.append(event)
    return found


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (NativeKind.MUTEX, ("mutex_lock", "mutex_timedlock", "mutex_clocklock")),
        (NativeKind.RWLOCK, ("rdlock", "timedrdlock", "clockrdlock")),
        (NativeKind.RWLOCK, ("wrlock", "timedwrlock", "clockwrlock")),
        (
            NativeKind.SEMAPHORE,
            ("semaphore_wait", "semaphore_timedwait", "semaphore_clockwait"),
        ),
    ],
)
def test_every_way_to_wait_for_a_lock_and_to_let_go_of_it(
    tmp_path: Path, kind: NativeKind, names: tuple[str, ...]
) -> None:
    trace = recorded(tmp_path, *names)

    for name in names:
        [wait] = events(trace, kind, name)
        assert length_ns(wait) > 4_000_000
        assert "call" in functions(trace, wait["stack"])
    assert events(trace, kind, "holder", releases=True)


def test_a_thread_that_is_joined_is_waited_for(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "join", "timedjoin")

    for name in ("join", "timedjoin"):
        [wait] = events(trace, NativeKind.THREAD, name)
        assert length_ns(wait) > 8_000_000


def test_who_wakes_others_by_a_condition_is_named(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "broadcast")

    assert events(trace, NativeKind.COND, "sleeper")
    assert events(trace, NativeKind.COND, "broadcast", releases=True)


def test_a_thread_that_spins_by_letting_others_run_is_seen_with_its_place(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "yield_until")

    spins = events(trace, NativeKind.YIELD, "yield_until")

    assert len({int(spin["lock"]) for spin in spins}) == 1
    assert 15_000_000 < sum(map(length_ns, spins)) < 60_000_000
    assert any("call" in functions(trace, spin["stack"]) for spin in spins)


@pytest.mark.parametrize("name", ["refused", "cancelled"])
def test_what_is_refused_or_cancelled_is_as_without_the_layer(tmp_path: Path, name: str) -> None:
    library = compiled(tmp_path, LIBRARY, "libmany")
    program = "import ctypes, sys\nctypes.CDLL(sys.argv[1])[sys.argv[2]]()"

    with_layer = run_recorded(tmp_path, program, library, name)
    without = run_recorded(tmp_path, program, library, name, options=("--no-native-layer",))

    assert with_layer.out == without.out != ""
    assert with_layer.status == without.status == 0
