"""What a recording says of a reader-writer lock: its sides apart, and who kept whom out."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.analysis.blame import blame

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("writer_first", [False, True])
def test_a_wait_is_blamed_on_who_is_inside_on_the_other_side(
    writer_first: bool, tmp_path: Path
) -> None:
    lock = cl.RWLock("catalog")
    first, second = (lock.write, lock.read) if writer_first else (lock.read, lock.write)

    def hold() -> None:
        first.acquire()
        inside.set()
        time.sleep(0.2)
        first.release()

    def wait() -> None:
        inside.wait()
        with second:
            pass

    inside = threading.Event()
    with cl.record(tmp_path / "t.clt"):
        threads = [threading.Thread(target=work, name=work.__name__) for work in (hold, wait)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = cl.load(tmp_path / "t.clt")

    sides = {lock.type: number for number, lock in trace.locks.items() if lock.name == "catalog"}
    assert set(sides) == {"RWLock.read", "RWLock.write"}
    waited_on = sides["RWLock.read" if writer_first else "RWLock.write"]
    waits = trace.waits[trace.waits["lock"] == waited_on]
    assert len(waits) == 1
    assert trace.threads[int(waits["thread"][0])].name == "wait"
    assert trace.threads[int(waits["holder"][0])].name == "hold"
    blamed = blame(trace).pairs
    blamed = blamed[trace.waits["lock"][blamed["wait"]] == waited_on]
    holds = trace.holds[blamed["hold"][blamed["hold"] >= 0]]
    assert {trace.threads[int(number)].name for number in holds["thread"]} == {"hold"}
    assert blamed["ns"][blamed["hold"] >= 0].sum() > 0.9 * blamed["ns"].sum()


def test_readers_that_meet_no_writer_leave_counters_only(tmp_path: Path) -> None:
    lock = cl.RWLock("catalog")
    with cl.record(tmp_path / "t.clt"):
        for _ in range(10):
            with lock.read, lock.read:
                pass
    trace = cl.load(tmp_path / "t.clt")

    read = next(n for n, lock in trace.locks.items() if lock.type == "RWLock.read")
    counted = trace.counters[trace.counters["lock"] == read]
    assert counted["acquires"].sum() == 20
    assert counted["contended"].sum() == 0
    assert counted["hold_ns"].sum() > 0
    assert not len(trace.holds[trace.holds["lock"] == read])
