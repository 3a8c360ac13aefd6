"""How long the owner of a spinlock needs that sleeps with it, against what the simulator says.

Usage: python tests/benchmarks/spinning_sleeper.py [--threads N,N,...] [--cores C] [--json]

One thread computes and sleeps half a millisecond by turns, and holds a spinlock for which all the
others spin: how soon it has a core again is up to the scheduler alone. Shown is the time of one
turn. Run it on a quiet machine: threads of other programs take part.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace

from contention_lab import SpinLock
from contention_lab.simulate import POLICIES, simulate
from contention_lab.simulate.batch.run import WAKES_PREEMPT_NS
from contention_lab.simulate.calibration import default_calibration
from contention_lab.simulate.program import Program, acquire, compute, release, sleep
from contention_lab.sweep.host import usable_cpus

SLEEP_S, LATE_S = 500e-6, 70e-6
"""How long it sleeps, and how much longer with the slack of the kernel's timers."""
BUSY_S = (100e-6, 700e-6, 2000e-6)
TURNS = 200


@dataclass(frozen=True)
class Turn:
    """The time of one turn."""

    threads: int
    busy_ms: float
    measured_ms: float
    simulated_ms: float


def measured_ms(threads: int, busy_s: float) -> float:
    """Return what a turn takes here."""
    lock = SpinLock()
    lock.acquire()

    def spin() -> None:
        with lock:
            pass

    spinners = [threading.Thread(target=spin) for _ in range(threads - 1)]
    for spinner in spinners:
        spinner.start()
    time.sleep(0.05)
    began = time.perf_counter()
    for _ in range(TURNS):
        started = time.thread_time()
        while time.thread_time() - started < busy_s:
            pass
        time.sleep(SLEEP_S)
    took = time.perf_counter() - began
    lock.release()
    for spinner in spinners:
        spinner.join()
    return took / TURNS * 1e3


def simulated_ms(threads: int, busy_s: float, cores: int) -> float:
    """Return what it takes in the simulator."""
    program, kind = Program(), POLICIES["test-and-set"]
    lock = program.add_lock(kind.lock(kind.defaults))
    turn = [compute(busy_s * 1e9), sleep((SLEEP_S + LATE_S) * 1e9)]
    program.add_thread(program.add_queue([[acquire(lock), *turn * TURNS, release(lock)]]))
    for _ in range(threads - 1):
        program.add_thread(program.add_queue([[compute(1e4), acquire(lock), release(lock)]]))
    machine = replace(default_calibration(cores).machine, preempt_after_ns=WAKES_PREEMPT_NS)
    return float(simulate(program.tables(machine)).threads["end_ns"][0]) / TURNS / 1e6


def main() -> int:
    """Measure, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", default="2,4,8,16")
    parser.add_argument("--cores", type=int, default=len(usable_cpus()))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    turns = [
        Turn(
            threads,
            busy_s * 1e3,
            measured_ms(threads, busy_s),
            simulated_ms(threads, busy_s, asked.cores),
        )
        for threads in map(int, asked.threads.split(","))
        for busy_s in BUSY_S
    ]
    if asked.json:
        print(json.dumps([asdict(turn) for turn in turns], indent=2))
        return 0
    print("threads     busy  measured  simulated")
    for turn in turns:
        error = turn.simulated_ms / turn.measured_ms - 1.0
        print(
            f"{turn.threads:7} {turn.busy_ms:5.1f} ms {turn.measured_ms:6.2f} ms "
            f"{turn.simulated_ms:7.2f} ms  {error:+.0%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
