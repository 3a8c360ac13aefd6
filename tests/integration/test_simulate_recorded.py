"""From a real recording to a simulation: the work is what the program did, and it scales so."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.simulate import POLICIES, Machine, simulate
from contention_lab.simulate.calibration import default_calibration
from contention_lab.simulate.packing import EndReason
from contention_lab.simulate.time_use import FEWEST_SAMPLES
from contention_lab.simulate.workload import recorded_policy, workload

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.simulate.outcome import Outcome
    from contention_lab.simulate.workload import Workload

THREADS, TURNS, HOLD_S, THINK_S = 2, 40, 0.002, 0.004


@pytest.fixture(scope="module", params=["profile", "trace"])
def work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """Record threads that sleep now with a lock and now without."""
    path: Path = tmp_path_factory.mktemp("recorded") / "run.clt"
    with cl.record(path, level=request.param):
        lock = threading.Lock()

        def turns() -> None:
            for _ in range(TURNS):
                time.sleep(THINK_S)
                with lock:
                    time.sleep(HOLD_S)

        threads = [threading.Thread(target=turns) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = cl.load(path)
    if len(trace.states) < 2 * FEWEST_SAMPLES:
        pytest.skip("the machine was too busy to sample what threads did")
    return workload(trace)


def simulated(work: Workload, threads: int | None) -> Outcome:
    calibration = default_calibration(8)
    gil = POLICIES["gil"]
    program = work.program(
        lambda lock: recorded_policy(lock, calibration),
        threads=threads,
        gil=gil.lock(calibration.costs_of(gil)) if work.gil else None,
    )
    found = simulate(program.tables(Machine(8)))
    assert found.reason == EndReason.DONE
    return found


def test_every_hold_is_there_for_as_long_as_it_was(work: Workload) -> None:
    lock = max(work.locks, key=lambda lock: work.held_ns(lock.id))
    place = work.locks.index(lock)

    found = simulated(work, None)

    assert int(found.locks["acquires"][place]) == THREADS * TURNS
    assert work.held_ns(lock.id) >= 0.7 * THREADS * TURNS * HOLD_S * 1e9


def test_replayed_as_recorded_it_takes_at_least_what_each_thread_did(work: Workload) -> None:
    assert simulated(work, None).elapsed_ns >= 0.7 * TURNS * (HOLD_S + THINK_S) * 1e9


def test_more_threads_help_until_the_lock_is_never_free(work: Workload) -> None:
    alone, two, many = (simulated(work, threads).elapsed_ns for threads in (1, 2, 16))
    held_ns = sum(work.held_ns(lock.id) for lock in work.locks)

    assert two < 0.75 * alone
    assert many < two
    assert many >= 0.95 * held_ns
