"""The locks, conditions and threads of C11 are recorded as those of POSIX, which they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from layer_programs import (
    functions,
    length_ns,
    load_program,
    needs_compiler,
    needs_layer,
    record_program,
)

import contention_lab as cl
from contention_lab.analysis import lock_table
from contention_lab.diagnosis import diagnose
from contention_lab.trace import WaitKind

pytestmark = [needs_layer, needs_compiler]
MS = 1_000_000

SERVER = """
#include <stdio.h>
#include <threads.h>
static mtx_t server;
static void nap(long ns) { thrd_sleep(&(struct timespec){0, ns}, NULL); }
__attribute__((noinline)) int backward(void)
{
    int result = mtx_lock(&server);
    nap(4000000);
    return result + mtx_unlock(&server);
}
static int train(void *turns)
{
    int failed = 0;
    for (long i = 0; i < (long)turns; i++) { failed += backward(); }
    return failed + 7;
}
int main(void)
{
    thrd_t thread[3];
    int value, sum = mtx_init(&server, mtx_timed);
    for (int i = 0; i < 3; i++) { sum += thrd_create(&thread[i], train, (void *)10); }
    for (int i = 0; i < 3; i++) { sum += thrd_join(thread[i], &value); sum += value; }
    printf("%d\\n", sum);
    fflush(stdout);
    return 0;
}
"""
EVERY_RESULT = """
#include <stdio.h>
#include <threads.h>
#include <time.h>
static mtx_t mutex, recursive;
static cnd_t cond;
static int ready, held;
static void nap(long ns) { thrd_sleep(&(struct timespec){0, ns}, NULL); }
static struct timespec in_ms(long ms)
{
    struct timespec until;
    timespec_get(&until, TIME_UTC);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    return until;
}
static int keeps(void *unused)
{
    mtx_lock(&mutex);
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    nap(30000000);
    ready = 1;
    int result = unused ? cnd_broadcast(&cond) : cnd_signal(&cond);
    mtx_unlock(&mutex);
    return result + 40;
}
int main(void)
{
    thrd_t thread;
    int value;
    struct timespec soon;
    mtx_init(&mutex, mtx_timed);
    mtx_init(&recursive, mtx_plain | mtx_recursive);
    cnd_init(&cond);
    thrd_create(&thread, keeps, NULL);
    while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE)) { thrd_yield(); }
    printf("%d ", mtx_trylock(&mutex) == thrd_busy);
    soon = in_ms(2);
    printf("%d ", mtx_timedlock(&mutex, &soon) == thrd_timedout);
    soon = (struct timespec){1, 2000000000};
    printf("%d ", mtx_timedlock(&mutex, &soon) == thrd_error);
    soon = in_ms(60000);
    printf("%d ", mtx_timedlock(&mutex, &soon) == thrd_success);
    mtx_unlock(&mutex);
    printf("%d ", thrd_join(thread, &value) == thrd_success);
    printf("%d ", value);
    ready = held = 0;
    mtx_lock(&mutex);
    thrd_create(&thread, keeps, &cond);
    while (!ready) { cnd_wait(&cond, &mutex); }
    soon = in_ms(2);
    printf("%d ", cnd_timedwait(&cond, &mutex, &soon) == thrd_timedout);
    mtx_unlock(&mutex);
    nap(40000000);
    printf("%d ", thrd_join(thread, &value) == thrd_success); /* has ended already */
    printf("%d ", value);
    printf("%d ", mtx_lock(&recursive));
    printf("%d ", mtx_trylock(&recursive));
    printf("%d ", mtx_unlock(&recursive));
    printf("%d ", mtx_unlock(&recursive));
    printf("%d\\n", mtx_trylock(&mutex) == thrd_success);
    fflush(stdout);
    return 0;
}
"""
OTHERS = """
/* As tinycthread has it: other results, other locks. */
#include <sched.h>
int mtx_lock(int *mutex) { while (__sync_lock_test_and_set(mutex, 1)) { sched_yield(); } return 1; }
int mtx_trylock(int *mutex) { return __sync_lock_test_and_set(mutex, 1) ? 3 : 1; }
int mtx_unlock(int *mutex) { __sync_lock_release(mutex); return 1; }
"""
USES_OTHERS = """
#include <pthread.h>
#include <stdio.h>
int mtx_lock(int *), mtx_trylock(int *), mtx_unlock(int *);
static int mutex[2] = {0, 77};
static int sum;
static void *work(void *unused)
{
    for (int i = 0; i < 1000; i++) { mtx_lock(mutex); sum++; mtx_unlock(mutex); }
    return unused;
}
int main(void)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) { pthread_create(&thread[i], NULL, work, NULL); }
    for (int i = 0; i < 2; i++) { pthread_join(thread[i], NULL); }
    printf("%d ", mtx_trylock(mutex));
    printf("%d ", mtx_trylock(mutex));
    printf("%d %d %d\\n", mtx_unlock(mutex), mutex[1], sum);
    fflush(stdout);
    return 0;
}
"""


def test_a_mutex_of_c11_has_waiters_holders_and_a_verdict(tmp_path: Path) -> None:
    assert record_program(tmp_path, SERVER) == (0, "21\n", "")

    trace = load_program(tmp_path)
    [row] = [row for row in lock_table(trace) if row.contended]
    waits = trace.waits[trace.waits["kind"] == WaitKind.CONTENTION]

    assert row.lock.type == "pthread_mutex"
    assert row.acquires == 30
    assert row.wait_s > 0.1
    assert all("backward" in functions(trace, wait["stack"]) for wait in waits)
    assert any("backward" in functions(trace, hold["stack"]) for hold in trace.holds)
    assert diagnose(trace).verdict == "serialised-by-lock"
    assert "backward" in diagnose(trace).summary


def test_conditions_joins_and_yields_of_c11_are_waits_for_others(tmp_path: Path) -> None:
    assert record_program(tmp_path, EVERY_RESULT)[0] == 0

    trace = load_program(tmp_path)
    kinds = {trace.lock(int(wait["lock"])).type: int(wait["kind"]) for wait in trace.waits}
    longest = {
        trace.lock(int(wait["lock"])).type: length_ns(wait)
        for wait in sorted(trace.waits, key=length_ns)
    }

    assert kinds["pthread_cond"] == WaitKind.COORDINATION
    assert longest["pthread_cond"] > 20 * MS
    assert kinds["pthread_mutex"] == WaitKind.CONTENTION


def test_every_result_of_c11_is_as_without_the_layer(tmp_path: Path) -> None:
    status, out, err = record_program(tmp_path, EVERY_RESULT)
    alone = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert (status, err) == (0, "")
    assert out == alone.stdout == "1 1 1 1 1 40 1 1 40 0 0 0 0 1\n"


def test_functions_of_the_same_names_in_a_library_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "others.c").write_text(OTHERS)
    command = ["cc", "-shared", "-fPIC", "others.c", "-o", "libothers.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    linked = ("libothers.so", f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "program.c").write_text(USES_OTHERS)
    command = ["cc", "-pthread", "program.c", *linked, "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)

    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-q", "--", "./program"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "1 3 1 77 2000\n", "")
