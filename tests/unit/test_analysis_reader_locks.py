"""Locks of readers of a queue between processes: waiting for one is waiting for an item."""

from __future__ import annotations

import pytest
from coordination_scene import Scene

from contention_lab.analysis.reader_locks import reader_locks, with_readers
from contention_lab.trace import Outcome, WaitKind

KIND = "multiprocessing.Lock in Queue"
TAKING = "multiprocessing/synchronize.py:SemLock.__enter__"


def readers(*through: tuple[str, int] | str, kind: str = KIND) -> Scene:
    """Two workers take a lock in turns, one while the other has it; 900 ms are waited in all."""
    scene = Scene(1000.0)
    lock = scene.lock(kind, 3, "/mp-1")
    workers = [scene.thread(f"worker {k}") for k in range(2)]
    stack = scene.stack(*through, ("worker", 7))
    for turn in range(9):
        holder, waiter = workers[turn % 2], workers[(turn + 1) % 2]
        at = 100.0 * turn
        scene.hold(lock, holder, at, at + 100.0, waiters=1, site=scene.frame("worker", 7))
        scene.wait(*(lock, waiter, at, at + 100.0, stack), by=holder, kind=WaitKind.CONTENTION)
    for worker in workers:
        scene.builder.add_counter(
            *(lock, worker), acquires=5, contended=5, wait_ns=450_000_000, hold_ns=450_000_000
        )
    return scene


@pytest.mark.parametrize("method", ["Queue.get", "SimpleQueue.get"])
def test_whoever_waits_to_read_waits_for_an_item(method: str) -> None:
    scene = readers(TAKING, f"multiprocessing/queues.py:{method}")
    trace = scene.trace()

    changed = with_readers(trace)

    assert len(reader_locks(trace)) == 1
    assert {*changed.waits["kind"].tolist()} == {WaitKind.COORDINATION}
    assert (changed.waits["start_ns"] == trace.waits["start_ns"]).all()
    assert len(changed.holds) == 0
    assert changed.counters["acquires"].sum() == 10
    assert changed.counters["wait_ns"].sum() == 0
    assert [one.lock for one in scene.diagnosis().findings if one.lock is not None] == []


def test_it_is_said_that_items_come_from_another_process() -> None:
    scene = readers(TAKING, "multiprocessing/queues.py:Queue.get")
    lock = scene.lock(KIND, 3, "/mp-1")
    stack = scene.stack(TAKING, "multiprocessing/queues.py:Queue.get", ("main", 9))
    scene.wait(lock, scene.main, 0.0, 900.0, stack, kind=WaitKind.CONTENTION)

    assert "items that come from another process" in scene.diagnosis().summary


@pytest.mark.parametrize(
    ("through", "kind"),
    [
        ((TAKING, "multiprocessing/queues.py:SimpleQueue.put"), KIND),
        ((TAKING,), "multiprocessing.Lock"),
        ((TAKING, ("Queue.get", 4)), KIND),
        (("multiprocessing/queues.py:Queue.get",), "threading.Lock"),
    ],
)
def test_other_locks_stay_locks(through: tuple[tuple[str, int] | str, ...], kind: str) -> None:
    scene = readers(*through, kind=kind)
    trace = scene.trace()

    assert not reader_locks(trace)
    assert with_readers(trace) is trace
    assert scene.diagnosis().findings[0].lock is not None


def test_tries_to_read_stay_tries() -> None:
    scene = readers(TAKING, "multiprocessing/queues.py:Queue.get")
    lock = scene.lock(KIND, 3, "/mp-1")
    stack = scene.stack(TAKING, "multiprocessing/queues.py:Queue.get", ("worker", 9))
    contention = WaitKind.CONTENTION
    scene.wait(lock, scene.main, 5.0, 5.0, stack, outcome=Outcome.FAILED_TRY, kind=contention)

    waits = with_readers(scene.trace()).waits

    tried = waits["outcome"] == Outcome.FAILED_TRY
    assert waits["kind"][tried].tolist() == [WaitKind.CONTENTION]
