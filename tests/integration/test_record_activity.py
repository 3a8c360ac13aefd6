"""What the recorder sees of threads between their events: states, stacks, load, failed tries."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.locks import Mutex
from contention_lab.trace import Call, Outcome, State, Trace, WaitFlag

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="the system does not show what threads do"
)
WITH_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def recorded(path: Path, *work: Callable[[], object]) -> Trace:
    """Run functions in threads of their own, recorded."""
    threads = [threading.Thread(target=one, name=one.__name__) for one in work]
    with cl.record(path):
        known = Mutex()
        for thread in threads:
            with known:
                thread.start()
        for thread in threads:
            thread.join()
    return cl.load(path)


def seen(trace: Trace, name: str) -> Counter[tuple[int, int]]:
    """Return how often a thread was seen in which state and call."""
    ids = [thread.id for thread in trace.threads.values() if thread.name == name]
    mine = [state for state in trace.states if state["thread"] in ids]
    return Counter((int(state["state"]), int(state["call"])) for state in mine)


def noted(work: Callable[[], object]) -> Callable[[], object]:
    """Make a thread known to the recorder before it does something."""

    def start() -> None:
        with Mutex():
            pass
        work()

    start.__name__ = work.__name__
    return start


def test_sleeping_and_reading_threads_are_seen_in_these_calls(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()

    def sleeper() -> None:
        time.sleep(0.3)
        theirs.send(b"x")

    def reader() -> None:
        ours.recv(1)

    trace = recorded(tmp_path / "run.clt", noted(sleeper), noted(reader))
    ours.close()
    theirs.close()

    assert seen(trace, "sleeper").most_common(1)[0][0] == (State.BLOCKED, Call.SLEEP)
    assert seen(trace, "reader").most_common(1)[0][0] == (State.BLOCKED, Call.SOCKET)
    assert trace.problems == ()


@pytest.mark.skipif(not WITH_GIL, reason="there is no GIL to wait for")
def test_threads_that_compute_are_seen_waiting_for_the_gil_and_where(tmp_path: Path) -> None:
    def compute() -> int:
        total, until = 0, time.monotonic() + 0.4
        while time.monotonic() < until:
            for number in range(2000):
                total = (total * 31 + number) & 0xFFFF
        return total

    trace = recorded(tmp_path / "run.clt", noted(compute), noted(compute))

    assert seen(trace, "compute")[State.AWAITS_GIL, 0]
    stacks = [trace.stack(int(state["stack"])) for state in trace.states if state["stack"]]
    assert any(frame.function.endswith("compute") for stack in stacks for frame in stack)


def test_the_load_of_the_process_counts_its_threads(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "run.clt", noted(lambda: time.sleep(0.2)))

    assert len(trace.load) >= 2
    assert trace.load["threads"].max() == 2  # the main thread, and the one that sleeps
    assert trace.load["runnable"].min() <= 1


def test_a_loop_of_failed_tries_is_one_wait(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path):
        lock = Mutex(name="flag")
        lock.acquire()
        opener = threading.Timer(0.05, lock.release)
        opener.start()
        while not lock.acquire(blocking=False):
            pass
        opener.join()
        lock.release()
    trace = cl.load(path)
    series = trace.waits[trace.waits["flags"] & int(WaitFlag.SERIES) != 0]

    assert len(series) == 1
    assert series["outcome"][0] == Outcome.FAILED_TRY
    length = int(series["end_ns"][0] - series["start_ns"][0])
    assert length >= 20_000_000
    assert series["spin_ns"][0] == length  # it did nothing else
    assert 0 < series["spin_cpu_ns"][0] <= length
    (counter,) = trace.counters[trace.counters["lock"] == series["lock"][0]][:1]
    assert series["spins"][0] == counter["failed_tries"]
    assert counter["contended"] == 0


def test_what_tries_burnt_counts_even_if_the_thread_was_away_for_long_after_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path):
        lock = Mutex(name="flag")
        lock.acquire()
        before = time.thread_time()
        while time.thread_time() < before + 0.02:
            lock.acquire(blocking=False)
        time.sleep(0.2)  # as if others had the GIL or the core
        lock.acquire(blocking=False)
        lock.release()
    trace = cl.load(path)
    series = trace.waits[trace.waits["flags"] & int(WaitFlag.SERIES) != 0]

    assert series["spin_cpu_ns"].sum() >= 10_000_000


def test_tries_with_naps_between_them_are_no_spinning(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    with cl.record(path):
        lock = Mutex(name="flag")
        lock.acquire()
        opener = threading.Timer(0.05, lock.release)
        opener.start()
        while not lock.acquire(blocking=False):
            time.sleep(0.01)
        opener.join()
        lock.release()
    trace = cl.load(path)
    (series,) = trace.waits[trace.waits["flags"] & int(WaitFlag.SERIES) != 0]

    assert series["park_ns"] > series["spin_ns"]
    (hold,) = [hold for hold in trace.holds if hold["lock"] == series["lock"]][:1]
    assert (
        hold["end_ns"] - hold["start_ns"] >= 20_000_000
    )  # a hold that made tries fail is recorded


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forks_do_not_wait_for_the_sampler_nor_it_for_them(tmp_path: Path) -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=compute) for _ in range(2)]
    with cl.record(tmp_path / "run.clt"):
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()

    assert cl.load(tmp_path / "run.clt").complete
