"""Locks that nobody waits for, but that are taken all the time: where, is recorded now and then."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import contention_lab as cl
from contention_lab.analysis.sites import user_frame
from contention_lab.trace import HoldFlag

if TYPE_CHECKING:
    from pathlib import Path


def add(lock: threading.Lock) -> None:
    with lock:
        pass


def look(lock: threading.Lock) -> None:
    lock.acquire()
    lock.release()


def test_a_few_holds_show_the_code_that_takes_a_free_lock_all_the_time(tmp_path: Path) -> None:
    with cl.record(tmp_path / "free.clt", level="profile"):
        lock = threading.Lock()
        for _ in range(150_000):
            add(lock)
            look(lock)
    trace = cl.load(tmp_path / "free.clt")

    (number,) = {int(one) for one in trace.counters["lock"][trace.counters["acquires"] > 100_000]}
    holds = trace.holds[trace.holds["lock"] == number]
    # At uneven steps, so that both are met, though they take turns.
    frames = [user_frame(trace.stack(int(stack))) for stack in holds["stack"]]
    assert [frame.function for frame in frames if frame is not None] == ["add", "look"] * 2
    assert {*holds["flags"].tolist()} == {int(HoldFlag.UNCONTENDED)}
    assert (holds["waiters"] == 0).all()


def test_at_level_counters_no_hold_is_recorded(tmp_path: Path) -> None:
    with cl.record(tmp_path / "free.clt", level="counters"):
        lock = threading.Lock()
        for _ in range(60_000):
            add(lock)

    assert not len(cl.load(tmp_path / "free.clt").holds)
