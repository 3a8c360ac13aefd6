"""Waits for locks of C code, with the stacks of those who wait and those who have them."""

from __future__ import annotations

import sysconfig
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from layer_programs import (
    Run,
    compiled,
    functions,
    length_ns,
    needs_compiler,
    needs_layer,
    run_recorded,
)

from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

pytestmark = [needs_layer, needs_compiler]
MS = 1_000_000

LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spinlock;
static sem_t semaphore;

__attribute__((constructor)) static void make(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_spin_init(&spinlock, 0);
    sem_init(&semaphore, 0, 1);
}

static void nap(void) { struct timespec t = {0, 2000000}; nanosleep(&t, NULL); }

void hold_mutex(void) { pthread_mutex_lock(&mutex); nap(); pthread_mutex_unlock(&mutex); }
void hold_rwlock(void) { pthread_rwlock_wrlock(&rwlock); nap(); pthread_rwlock_unlock(&rwlock); }
void hold_semaphore(void) { sem_wait(&semaphore); nap(); sem_post(&semaphore); }
void hold_spinlock(void) { pthread_spin_lock(&spinlock); nap(); pthread_spin_unlock(&spinlock); }
void meet(void) { pthread_barrier_wait(&barrier); }
void wait_in_vain(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&cond, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void *in_thread(void *what)
{
    for (int i = 0; i < 5; i++) { ((void (*)(void))what)(); }
    return NULL;
}
void in_native_threads(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, in_thread, (void *)hold_mutex);
    pthread_create(&b, NULL, in_thread, (void *)hold_mutex);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
static void *for_ever(void *nothing)
{
    for (;;) { wait_in_vain(); }
    return nothing;
}
int cancelled(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, for_ever, NULL);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 3; i++) { nap(); }
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED;
}
int errors(void)
{
    pthread_mutexattr_t kind;
    pthread_mutex_t own;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&own, &kind);
    int wrong = pthread_mutex_unlock(&own) != 1; /* EPERM */
    wrong |= pthread_mutex_lock(&own) != 0;
    wrong |= pthread_mutex_lock(&own) != 35; /* EDEADLK */
    wrong |= pthread_mutex_unlock(&own) != 0;
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&own, &kind);
    wrong |= pthread_mutex_lock(&own) || pthread_mutex_lock(&own);
    wrong |= pthread_mutex_unlock(&own) || pthread_mutex_unlock(&own);
    return wrong;
}
"""
THREADS = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])

both = threading.Barrier(2)

def call(name):
    for _ in range(5):
        both.wait()
        getattr(library, name)()

def twice(name):
    threads = [threading.Thread(target=call, args=(name,), name=f"thread {i}") for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def run(folder: Path, program: str) -> Run:
    library = compiled(folder, LIBRARY, "libheld")
    done = run_recorded(folder, THREADS + program, library)
    assert done.status == 0, done.err
    return done


def waits(trace: Trace, kind: NativeKind, symbol: str) -> list[Any]:
    """Return the waits for a kind of lock that a function of the library takes."""
    locks = [
        lock.id
        for lock in trace.native.locks.values()
        if lock.kind is kind and lock.symbol == symbol and lock.image.endswith("libheld.so")
    ]
    is_release = int(NativeWaitFlag.RELEASE)
    return [w for w in trace.native_waits if w["lock"] in locks and not w["flags"] & is_release]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("hold_mutex", NativeKind.MUTEX),
        ("hold_rwlock", NativeKind.RWLOCK),
        ("hold_semaphore", NativeKind.SEMAPHORE),
        ("hold_spinlock", NativeKind.SPINLOCK),
        ("meet", NativeKind.BARRIER),
        ("wait_in_vain", NativeKind.COND),
    ],
)
def test_waits_for_every_kind_of_native_lock(
    tmp_path: Path, function: str, kind: NativeKind
) -> None:
    trace = run(tmp_path, f"twice({function!r})").trace

    found = waits(trace, kind, function)

    assert found
    assert {trace.thread(int(wait["thread"])).name for wait in found} <= {"thread 0", "thread 1"}
    assert any("call" in functions(trace, wait["stack"]) for wait in found)


def test_a_wait_for_a_mutex_says_who_had_it_and_what_both_did(tmp_path: Path) -> None:
    trace = run(tmp_path, "twice('hold_mutex')").trace
    native_ids = {thread.native_id: thread.name for thread in trace.threads.values()}

    found = waits(trace, NativeKind.MUTEX, "hold_mutex")
    deep = [wait for wait in found if wait["native_stack"]]
    is_release = int(NativeWaitFlag.RELEASE)
    releases = [wait for wait in trace.native_waits if wait["flags"] & is_release]

    assert sum(map(length_ns, found)) > 2 * MS
    for wait in found:
        other = {"thread 0": "thread 1", "thread 1": "thread 0"}
        name = trace.thread(int(wait["thread"])).name
        assert native_ids[int(wait["holder"])] == other[name]
    assert deep
    assert trace.native_stack(int(deep[0]["native_stack"]))[0].label == "libheld.so: hold_mutex"
    assert any(
        trace.native_stack(int(release["native_stack"]))[0].label == "libheld.so: hold_mutex"
        for release in releases
    )


def test_threads_that_python_does_not_know_are_there_by_their_number(tmp_path: Path) -> None:
    trace = run(tmp_path, "library.in_native_threads()").trace

    found = waits(trace, NativeKind.MUTEX, "hold_mutex")

    assert found
    assert all(wait["native_id"] != 0 for wait in found)
    assert all(wait["thread"] == 0 and wait["stack"] == 0 for wait in found)


def test_a_thread_that_is_cancelled_in_a_wait_ends_as_it_would(tmp_path: Path) -> None:
    assert run(tmp_path, "print(library.cancelled())").out == "1\n"


def test_mutexes_that_check_for_errors_still_do(tmp_path: Path) -> None:
    assert run(tmp_path, "print(library.errors())").out == "0\n"


def test_a_library_may_be_unloaded_while_its_locks_are_recorded(tmp_path: Path) -> None:
    program = """
import _ctypes
for _ in range(10):
    twice("hold_mutex")
    _ctypes.dlclose(library._handle)
    library = ctypes.CDLL(sys.argv[1])
"""
    trace = run(tmp_path, program).trace

    assert len(trace.native_waits) > 10


@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED") == 1, reason="there is no GIL")
def test_the_gil_is_no_native_lock(tmp_path: Path) -> None:
    program = """
def compute():
    return sum(i * i for i in range(500_000))
threads = [threading.Thread(target=compute) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    trace = run(tmp_path, program).trace
    kinds = Counter(lock.kind for lock in trace.native.locks.values())

    assert len(trace.gil_waits) > 4
    assert kinds[NativeKind.COND] == kinds[NativeKind.MUTEX] == 0


def test_one_connection_to_sqlite_shows_its_mutex(tmp_path: Path) -> None:
    pytest.importorskip("sqlite3")
    program = """
import sqlite3
db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("create table t (a, b)")
db.executemany("insert into t values (?, ?)", [(i, i * 7 % 1000) for i in range(20000)])
def query():
    for _ in range(5):
        db.execute("select count(*) from t where b > 500 and a in (select b from t)").fetchall()
threads = [threading.Thread(target=query) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    trace = run(tmp_path, program).trace

    mutexes = {
        lock.id: lock for lock in trace.native.locks.values() if lock.kind is NativeKind.MUTEX
    }
    found = [wait for wait in trace.native_waits if int(wait["lock"]) in mutexes]

    assert found
    assert any("sqlite" in mutexes[int(wait["lock"])].image for wait in found)
    assert any("query" in functions(trace, wait["stack"]) for wait in found)
