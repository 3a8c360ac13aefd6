"""What the layer below Python costs a recorded program, and how exact its waits for the GIL are.

Figures are of whole programs run under `record` with the layer and without it
(`--no-native-layer`), in turns, so that what the machine does otherwise falls on both. Run: `python
tests/benchmarks/layer_cost.py [--rounds N]`; the first two figures need a C compiler (`cc`).

- A `pthread_mutex_lock` and its `unlock`, uncontended, while a second thread is alive: CPU time,
  the least of many, since a core whose other half is busy runs at two thirds of its speed.
- The same in a program that is not Python, where each is counted, against the program alone.
- A program of four threads that compute and so change the GIL all the time: wall time.
- The same, the waits for the GIL that its trace has, against the wall time of each thread without
  its CPU time. That is an independent figure only where threads do not wait for a CPU: on a busy
  machine, run it with a real-time priority (`chrt -f 10`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import contention_lab as cl

PAIRS = 2_000_000
LOOP_C = """
#include <pthread.h>
#include <time.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

double pair_ns(long pairs)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    double before = now();
    for (long i = 0; i < pairs; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return (now() - before) / (double)pairs;
}
"""
MAIN_C = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
double pair_ns(long pairs);
static void *idle(void *nothing) { pause(); return nothing; }
int main(int count, char **arguments)
{
    pthread_t other;
    double least = 1e9;
    pthread_create(&other, NULL, idle, NULL);
    for (int i = 0; i < 5 && count > 1; i++) {
        double now = pair_ns(atol(arguments[1]));
        least = now < least ? now : least;
    }
    printf("%f\\n", least);
    fflush(stdout);
    return 0;
}
"""
MUTEX = """
import ctypes, sys, threading
pair_ns = ctypes.CDLL(sys.argv[1]).pair_ns
pair_ns.restype, pair_ns.argtypes = ctypes.c_double, [ctypes.c_long]
done = threading.Event()
other = threading.Thread(target=done.wait)
other.start()
print(min(pair_ns(int(sys.argv[2])) for _ in range(5)))
done.set()
"""
BUSY = """
import json, sys, threading, time

def compute(turns):
    total = 0
    for i in range(turns):
        total += i * i % 7
    return total

def work(name):
    ready.wait()
    before = time.perf_counter_ns(), time.thread_time_ns()
    compute(int(sys.argv[1]))
    after = time.perf_counter_ns(), time.thread_time_ns()
    wall, cpu = (b - a for a, b in zip(before, after))
    waited[name] = wall - cpu

waited = {}
ready = threading.Barrier(5)
workers = [threading.Thread(target=work, args=(f"busy {i}",), name=f"busy {i}") for i in range(4)]
for worker in workers:
    worker.start()
ready.wait()
before = time.perf_counter()
for worker in workers:
    worker.join()
print(json.dumps({"wall_s": time.perf_counter() - before, "waited_ns": waited}))
"""


def recorded(folder: Path, program: str, *arguments: str, layer: bool) -> str:
    """Run a program under `record` and return what it printed; the trace is `run.clt`."""
    (folder / "program.py").write_text(program)
    options = ["-q", "-o", "run.clt", *([] if layer else ["--no-native-layer"])]
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", *options, "program.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def show(what: str, value: str, goal: str) -> None:
    """Print one line of the table."""
    print(f"{what:<58}{value:>20}   {goal}", flush=True)


def mutex_pair(folder: Path, rounds: int) -> None:
    """Show what a pair costs more with the layer."""
    compiler = shutil.which("cc")
    if compiler is None:
        show("pthread_mutex_lock and unlock", "no C compiler", "")
        return
    (folder / "loop.c").write_text(LOOP_C)
    command = [compiler, "-O2", "-shared", "-fPIC", "-pthread", "loop.c", "-o", "loop.so"]
    subprocess.run(command, cwd=folder, check=True)
    costs: dict[bool, list[float]] = {True: [], False: []}
    for round_number in range(rounds):
        for layer in (True, False) if round_number % 2 else (False, True):
            told = recorded(folder, MUTEX, str(folder / "loop.so"), str(PAIRS), layer=layer)
            costs[layer].append(float(told))
    more = min(costs[True]) - min(costs[False])
    show(
        "pthread_mutex_lock and unlock, two threads alive", f"+{more:.1f} ns", "at most 10 ns more"
    )


def mutex_pair_elsewhere(folder: Path, rounds: int) -> None:
    """Show what a pair costs more in a program that is not Python."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    (folder / "program.c").write_text(LOOP_C + MAIN_C)
    command = [compiler, "-O2", "-pthread", "program.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    alone = ["./program", str(PAIRS)]
    record = [sys.executable, "-m", "contention_lab", "record", "-q", "-o", "run.clt", "--"]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for found, command in zip(times, (alone, [*record, *alone]), strict=True):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            found.append(float(done.stdout))
    pairs = sum(int(counter["acquires"]) for counter in cl.load(folder / "run.clt").counters)
    assert pairs == 5 * PAIRS, "all are counted"
    more = min(times[1]) - min(times[0])
    show("... in a program that is not Python, counted", f"+{more:.1f} ns", "at most 10 ns more")


def busy_threads(folder: Path, rounds: int, turns: int) -> None:
    """Show what four busy threads cost more, and how exact their waits are."""
    walls: dict[bool, list[float]] = {True: [], False: []}
    errors = []
    for round_number in range(rounds):
        for layer in (True, False) if round_number % 2 else (False, True):
            told = json.loads(recorded(folder, BUSY, str(turns), layer=layer))
            walls[layer].append(told["wall_s"])
            if layer:
                errors.append(error_of_waits(folder / "run.clt", told["waited_ns"]))
    ratios = [with_layer / without - 1 for with_layer, without in zip(*walls.values(), strict=True)]
    best = min(walls[True]) / min(walls[False]) - 1
    middle = statistics.median(ratios)
    show("four busy threads, wall time, median of rounds", f"{middle:+.1%}", "at most 2 %")
    show("four busy threads, wall time, best against best", f"{best:+.1%}", "")
    show("their waits for the GIL, median error", f"{statistics.median(errors):+.1%}", "within 3 %")
    show("... of all rounds", " ".join(f"{error:+.1%}" for error in sorted(errors)), "")


def error_of_waits(path: Path, expected_ns: dict[str, int]) -> float:
    """Return the waits of computing threads in a trace, relative to what they should be."""
    trace = cl.load(path)
    assert len(trace.gil_totals), "the layer was not there"
    found = sum(
        int(wait["end_ns"] - wait["start_ns"])
        for wait in trace.gil_waits
        if any(frame.function == "compute" for frame in trace.stack(int(wait["stack"])))
    )
    return found / sum(expected_ns.values()) - 1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=4_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        mutex_pair(Path(name), 2 * options.rounds)
        mutex_pair_elsewhere(Path(name), 2 * options.rounds)
        busy_threads(Path(name), options.rounds, options.turns)


if __name__ == "__main__":
    main()
