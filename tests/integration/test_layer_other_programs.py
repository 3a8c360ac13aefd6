"""`record ./program`: programs that are not Python, by their locks of the C library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from resource import RLIMIT_FSIZE, setrlimit
from typing import TYPE_CHECKING

import pytest
from layer_programs import functions, length_ns, needs_compiler, needs_layer

import contention_lab as cl
from contention_lab.analysis import lock_table
from contention_lab.diagnosis import diagnose
from contention_lab.trace import Trace, WaitKind, not_seen

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [needs_layer, needs_compiler]
MS = 1_000_000

SERVER = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t server = PTHREAD_MUTEX_INITIALIZER;
static void nap(long ns) { struct timespec t = {0, ns}; nanosleep(&t, NULL); }
__attribute__((noinline)) void backward(void)
{
    pthread_mutex_lock(&server);
    nap(20000000);
    pthread_mutex_unlock(&server);
}
__attribute__((noinline)) void register_node(void)
{
    pthread_mutex_lock(&server);
    nap(100000);
    pthread_mutex_unlock(&server);
}
static void *train(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++) {
        register_node();
        nap(300000);
        register_node();
        nap(300000);
        backward();
        nap(300000);
    }
    return NULL;
}
"""
FOUR_TRAININGS = (
    SERVER
    + """
int main(int count, char **arguments)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) { pthread_create(&thread[i], NULL, train, NULL); }
    for (int i = 0; i < 4; i++) { pthread_join(thread[i], NULL); }
    printf("%d %s\\n", count, count > 1 ? arguments[1] : "");
    return 3;
}
"""
)


def build(folder: Path, source: str, compiler: str = "cc", suffix: str = "c") -> None:
    (folder / f"program.{suffix}").write_text(textwrap.dedent(source))
    command = [compiler, "-O2", "-pthread", f"program.{suffix}", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)


def record(
    folder: Path,
    *arguments: str,
    program: str = "./program",
    before: Callable[[], None] | None = None,
) -> tuple[int, str, str]:
    """Return exit status, output and errors of a recorded program."""
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", *arguments, "--", program, "one"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
    )
    return done.returncode, done.stdout, done.stderr


def load(folder: Path) -> Trace:
    trace = cl.load(folder / "program.clt")
    assert not trace.problems
    assert trace.complete
    return trace


def test_the_program_runs_as_it_would_and_the_trace_is_named(tmp_path: Path) -> None:
    build(tmp_path, FOUR_TRAININGS)

    status, out, err = record(tmp_path)

    assert (status, out) == (3, "2 one\n")
    assert err == ("contention-lab: wrote program.clt; next: contention-lab diagnose program.clt\n")
    assert load(tmp_path).meta["argv"] == ["./program", "one"]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("nowhere/run.clt", "No such file or directory, so there is no trace"),
        ("program.c/run.clt", "Not a directory, so there is no trace"),
        ("/dev/full", r"No space left on device, so there is no trace; \d+ waits"),
    ],
)
def test_a_trace_that_cannot_be_written_is_said_and_stops_no_program(
    output: str, said: str, tmp_path: Path
) -> None:
    build(tmp_path, FOUR_TRAININGS)

    status, out, err = record(tmp_path, "-q", "-o", output)

    assert (status, out) == (3, "2 one\n")
    assert re.fullmatch(f"contention-lab: {output}: {said}\n", err)


def test_a_full_disk_ends_the_trace_of_a_program_and_not_the_program(tmp_path: Path) -> None:
    build(tmp_path, FOUR_TRAININGS)

    status, out, err = record(tmp_path, before=lambda: setrlimit(RLIMIT_FSIZE, (3000, 3000)))

    assert (status, out) == (3, "2 one\n")
    assert re.fullmatch(
        r"contention-lab: program.clt: File too large, so the trace ends there; \d+ waits\n", err
    )
    assert (tmp_path / "program.clt").stat().st_size == 3000


def test_a_mutex_has_waiters_holders_and_the_functions_of_both(tmp_path: Path) -> None:
    build(tmp_path, FOUR_TRAININGS)
    assert record(tmp_path, "-q")[2] == ""

    trace = load(tmp_path)
    [row] = [row for row in lock_table(trace) if row.contended]
    waits = trace.waits[trace.waits["kind"] == WaitKind.CONTENTION]
    held = {functions(trace, hold["stack"])[0] for hold in trace.holds}
    waiting = {functions(trace, wait["stack"])[0] for wait in waits}
    long_holds = [hold for hold in trace.holds if length_ns(hold) >= 20 * MS]

    assert row.lock.type == "pthread_mutex"
    assert row.contended == len(waits) > 10
    assert row.wait_s > 0.2
    assert {"backward", "register_node"} <= held
    assert {"backward", "register_node"} <= waiting
    assert len(long_holds) > 5
    # A thread that releases in its last call is already elsewhere: where it took the lock counts.
    by_backward = [h for h in long_holds if functions(trace, h["stack"])[0] == "backward"]
    assert len(by_backward) > 0.6 * len(long_holds)
    assert all(int(wait["holder"]) in trace.threads for wait in waits if wait["holder"])


def test_the_case_this_project_starts_from_is_diagnosed(tmp_path: Path) -> None:
    build(tmp_path, FOUR_TRAININGS)
    record(tmp_path, "-q")

    diagnosis = diagnose(load(tmp_path))

    assert diagnosis.verdict == "serialised-by-lock"
    assert "backward" in diagnosis.summary


def test_waiting_for_a_condition_is_no_contention(tmp_path: Path) -> None:
    build(
        tmp_path,
        """
        #include <pthread.h>
        #include <time.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
        static int waiting, done;
        static void *consume(void *unused)
        {
            pthread_mutex_lock(&mutex);
            waiting = 1;
            while (!done) { pthread_cond_wait(&ready, &mutex); }
            pthread_mutex_unlock(&mutex);
            return unused;
        }
        int main(void)
        {
            pthread_t thread;
            struct timespec t = {0, 20000000};
            int seen = 0;
            pthread_create(&thread, NULL, consume, NULL);
            while (!seen) {
                pthread_mutex_lock(&mutex);
                seen = waiting;
                pthread_mutex_unlock(&mutex);
                nanosleep(&t, NULL);
            }
            pthread_mutex_lock(&mutex);
            done = 1;
            pthread_cond_broadcast(&ready);
            pthread_mutex_unlock(&mutex);
            pthread_join(thread, NULL);
            return 0;
        }
        """,
    )
    record(tmp_path, "-q")
    trace = load(tmp_path)

    kinds = {trace.lock(int(wait["lock"])).type: int(wait["kind"]) for wait in trace.waits}

    assert kinds["pthread_cond"] == WaitKind.COORDINATION
    assert max(map(length_ns, trace.waits)) > 10 * MS


def test_a_program_without_threads_gets_none_from_us(tmp_path: Path) -> None:
    build(
        tmp_path,
        """
        #include <dirent.h>
        #include <stdio.h>
        #include <stdlib.h>
        int main(void)
        {
            int count = 0;
            DIR *tasks = opendir("/proc/self/task");
            while (readdir(tasks) != NULL) { count++; }
            printf("%d %s\\n", count - 2, getenv("LD_PRELOAD") ? "preloaded" : "clean");
            fflush(stdout);
            return system("env | grep -c -e CONTENTION -e LD_PRELOAD") ? 0 : 1;
        }
        """,
    )

    status, out, _ = record(tmp_path, "-q")

    assert (status, out) == (0, "1 clean\n0\n")
    assert len(load(tmp_path).waits) == 0


def test_a_forked_child_leaves_the_trace_alone(tmp_path: Path) -> None:
    build(
        tmp_path,
        SERVER
        + """
        #include <sys/wait.h>
        int main(void)
        {
            pthread_t thread[2];
            int status;
            for (int i = 0; i < 2; i++) { pthread_create(&thread[i], NULL, train, NULL); }
            if (fork() == 0) { exit(0); }
            wait(&status);
            for (int i = 0; i < 2; i++) { pthread_join(thread[i], NULL); }
            return status;
        }
        """,
    )

    assert record(tmp_path, "-q")[0] == 0
    assert len(load(tmp_path).waits) > 0


def test_a_killed_program_leaves_what_it_had_done(tmp_path: Path) -> None:
    build(
        tmp_path,
        SERVER
        + """
        #include <signal.h>
        int main(void)
        {
            pthread_t thread[3];
            for (int i = 0; i < 3; i++) { pthread_create(&thread[i], NULL, train, NULL); }
            nap(200000000);
            raise(SIGKILL);
            return 0;
        }
        """,
    )

    assert record(tmp_path, "-q")[0] == -9
    trace = cl.load(tmp_path / "program.clt")
    assert not trace.complete
    assert len(trace.waits) > 3


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_a_program_in_cpp_has_names_as_people_write_them(tmp_path: Path) -> None:
    build(
        tmp_path,
        """
        #include <chrono>
        #include <mutex>
        #include <thread>
        #include <vector>
        namespace autodiff {
        struct Server {
            std::mutex mutex;
            __attribute__((noinline)) void backward(int count)
            {
                std::lock_guard<std::mutex> guard(mutex);
                std::this_thread::sleep_for(std::chrono::milliseconds(count));
            }
        };
        }
        int main()
        {
            autodiff::Server server;
            std::vector<std::thread> threads;
            for (int i = 0; i < 3; i++) {
                threads.emplace_back([&] { for (int j = 0; j < 10; j++) { server.backward(2); } });
            }
            for (auto &thread : threads) { thread.join(); }
        }
        """,
        "c++",
        "cpp",
    )
    record(tmp_path, "-q")
    trace = load(tmp_path)

    assert any(
        name == "autodiff::Server::backward(int)"
        for wait in trace.waits
        for name in functions(trace, wait["stack"])
    )


@pytest.mark.skipif(shutil.which("rustc") is None, reason="no Rust compiler")
def test_a_program_in_rust_shows_who_waits_for_its_mutex_and_who_has_it(tmp_path: Path) -> None:
    (tmp_path / "program.rs").write_text(
        textwrap.dedent(
            """
            use std::sync::{Arc, Mutex};
            use std::{thread, time::Duration};

            #[inline(never)]
            fn backward(server: &Mutex<u32>) {
                let mut steps = server.lock().unwrap();
                *steps += 1;
                thread::sleep(Duration::from_millis(5));
            }

            fn main() {
                let server = Arc::new(Mutex::new(0));
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        let server = server.clone();
                        thread::spawn(move || {
                            for _ in 0..8 {
                                backward(&server);
                            }
                        })
                    })
                    .collect();
                for thread in threads {
                    thread.join().unwrap();
                }
            }
            """
        )
    )
    subprocess.run(["rustc", "-O", "program.rs"], cwd=tmp_path, check=True, capture_output=True)
    record(tmp_path, "-q")
    trace = load(tmp_path)

    [row] = [row for row in lock_table(trace) if row.contended]

    assert row.lock.type == "futex"
    assert row.lock.site is not None
    assert row.lock.site.function == "program::backward"
    assert any("program::backward" in functions(trace, hold["stack"]) for hold in trace.holds)
    unseen = "uncontended acquires of futex locks: only waits in the kernel are seen"
    assert unseen in not_seen(trace)


def test_without_the_layer_there_is_nothing_to_record_with(tmp_path: Path) -> None:
    build(tmp_path, FOUR_TRAININGS)

    status, out, err = record(tmp_path, "--no-native-layer")

    assert (status, out) == (1, "")
    assert "only with the native layer" in err
