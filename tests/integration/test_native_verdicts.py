"""`record ./program`, then `diagnose`: what is said of programs in C, and of which functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from layer_programs import needs_compiler, needs_layer

import contention_lab as cl
from contention_lab.diagnosis import diagnose

pytestmark = [needs_layer, needs_compiler]

HEAD = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#define THREADS 4
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spinlock;
static volatile unsigned long total;
static int jobs, over;
static void nap(long ns) { struct timespec t = {0, ns}; nanosleep(&t, NULL); }
__attribute__((noinline)) static void spend(long ns)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    long until = t.tv_sec * 1000000000 + t.tv_nsec + ns;
    do {
        for (int i = 0; i < 1000; i++) { total += i; }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec * 1000000000 + t.tv_nsec < until);
}
static void *work(void *unused);
static void run(int count)
{
    pthread_t thread[16];
    for (int i = 0; i < count; i++) { pthread_create(&thread[i], NULL, work, NULL); }
    for (int i = 0; i < count; i++) { pthread_join(thread[i], NULL); }
}
"""
TURNS = (
    HEAD
    + """
__attribute__((noinline)) void update_index(void)
{
    pthread_mutex_lock(&mutex);
    nap(4000000);
    pthread_mutex_unlock(&mutex);
    total++;
}
static void *work(void *unused)
{
    for (int i = 0; i < 25; i++) { update_index(); nap(100000); }
    return unused;
}
int main(void) { run(THREADS); return 0; }
"""
)
SPINNING = (
    HEAD
    + """
__attribute__((noinline)) void add_up(void)
{
    pthread_spin_lock(&spinlock);
    spend(300000);
    pthread_spin_unlock(&spinlock);
    total++;
}
static void *work(void *unused)
{
    for (int i = 0; i < 120; i++) { add_up(); }
    return unused;
}
int main(void) { pthread_spin_init(&spinlock, 0); run(atoi(getenv("COUNT"))); return 0; }
"""
)
SWEEPER = (
    HEAD
    + """
__attribute__((noinline)) void look_up(void)
{
    pthread_mutex_lock(&mutex);
    total++;
    pthread_mutex_unlock(&mutex);
    nap(300000);
}
__attribute__((noinline)) void sweep(void)
{
    pthread_mutex_lock(&mutex);
    nap(60000000);
    pthread_mutex_unlock(&mutex);
    total++;
}
static void *work(void *unused)
{
    while (!over) { look_up(); }
    return unused;
}
static void *clean(void *unused)
{
    for (int i = 0; i < 10; i++) { sweep(); nap(15000000); }
    over = 1;
    return unused;
}
int main(void)
{
    pthread_t cleaner;
    pthread_create(&cleaner, NULL, clean, NULL);
    run(THREADS);
    pthread_join(cleaner, NULL);
    return 0;
}
"""
)
HEALTHY = (
    HEAD
    + """
static void *work(void *unused)
{
    for (int i = 0; i < 200; i++) {
        spend(500000);
        pthread_mutex_lock(&mutex);
        total++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(void) { run(2); return 0; }
"""
)
IDLE_POOL = (
    HEAD
    + """
static void *work(void *unused)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (jobs == 0 && !over) { pthread_cond_wait(&ready, &mutex); }
        if (jobs == 0) { break; }
        jobs--;
        pthread_mutex_unlock(&mutex);
        nap(100000);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}
static void *feed(void *unused)
{
    for (int i = 0; i < 60; i++) {
        nap(5000000);
        pthread_mutex_lock(&mutex);
        jobs++;
        pthread_cond_signal(&ready);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_broadcast(&ready);
    pthread_mutex_unlock(&mutex);
    return unused;
}
int main(void)
{
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed, NULL);
    run(THREADS);
    pthread_join(feeder, NULL);
    return 0;
}
"""
)


def recorded(folder: Path, source: str, **variables: str) -> Path:
    """Build and record a program; return its trace."""
    (folder / "program.c").write_text(textwrap.dedent(source))
    command = ["cc", "-O1", "-fno-optimize-sibling-calls", "-pthread", "program.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-q", "--", "./program"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent), **variables},
        check=True,
        timeout=60,
    )
    return folder / "program.clt"


def diagnosis(folder: Path, source: str, **variables: str) -> dict[str, Any]:
    """Return what is said of a program."""
    return diagnose(cl.load(recorded(folder, source, **variables))).to_json()


def functions(parties: list[dict[str, Any]]) -> list[str]:
    """Return the functions of parties that the program's source has."""
    return [party["site"]["function"] for party in parties if party["site"]]


def test_threads_that_take_turns_are_serialised_by_the_mutex(tmp_path: Path) -> None:
    said = diagnosis(tmp_path, TURNS)

    first = said["findings"][0]
    assert said["verdict"] == "serialised-by-lock"
    assert first["lock"]["type"] == "pthread_mutex"
    assert functions(first["victims"])[0] == functions(first["culprits"])[0] == "update_index"


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) > 4,
    reason="more cores than the program has threads to spin on",
)
def test_spinning_threads_that_keep_the_holder_from_running_have_collapsed(tmp_path: Path) -> None:
    # More threads than cores: the one that has the lock is put off its core in the middle.
    said = diagnosis(tmp_path, SPINNING, COUNT=str(3 * len(os.sched_getaffinity(0))))

    first = said["findings"][0]
    assert said["verdict"] == "spin-collapse"
    assert first["lock"]["type"] == "pthread_spinlock"
    assert functions(first["victims"])[0] == "add_up"


def test_a_few_long_holds_of_other_code_are_told_from_the_rest(tmp_path: Path) -> None:
    said = diagnosis(tmp_path, SWEEPER)

    first = said["findings"][0]
    assert said["verdict"] in ("slow-holder-elsewhere", "serialised-by-lock", "held-across-io")
    assert functions(first["victims"])[0] == "look_up"
    assert functions(first["culprits"])[0] == "sweep"


def test_a_program_whose_threads_hardly_meet_is_healthy(tmp_path: Path) -> None:
    said = diagnosis(tmp_path, HEALTHY)

    assert said["verdict"] == "healthy"
    assert said["findings"] == []


def test_workers_that_wait_for_work_accuse_no_lock(tmp_path: Path) -> None:
    said = diagnosis(tmp_path, IDLE_POOL)

    assert said["verdict"] in ("healthy", "idle-wait", "starved-by-producer")
    assert [finding["lock"] for finding in said["findings"] if finding["severity"]] == []


def test_the_page_and_the_table_are_about_its_functions(tmp_path: Path) -> None:
    trace = recorded(tmp_path, TURNS)
    command = [sys.executable, "-m", "contention_lab"]
    variables = {**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)}
    outputs = [
        subprocess.run(
            [*command, *arguments, str(trace)],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for arguments in (["top"], ["report"], ["diagnose", "--json"])
    ]

    assert "update_index" in outputs[0]
    page = trace.with_suffix(".html").read_text()
    assert "update_index" in page
    assert 'id="gil"' not in page
    assert json.loads(outputs[2])["gil_source"] is None
