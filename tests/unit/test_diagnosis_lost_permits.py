"""Permits of a semaphore that are never given back; and those that only seem so."""

from __future__ import annotations

from typing import Any

import numpy as np
from coordination_scene import MS, Scene

from contention_lab.analysis.permits import never_returned
from contention_lab.trace import WaitKind
from contention_lab.trace.schema import HISTOGRAM_BUCKETS


def returned(count: int) -> Any:
    """Return a histogram of so many holds."""
    return np.array([count] + [0] * (HISTOGRAM_BUCKETS - 1), dtype=np.uint64)


def pool(*, kept: int, by_others: bool = False, end_ms: float = 900.0) -> tuple[Scene, int]:
    """Three threads that take turns at two permits; the first keeps some of those that it takes."""
    scene = Scene()
    lock = scene.lock("threading.Semaphore", 10)
    working = scene.stack(("query", 20))
    waiting = scene.stack(("take", 30))
    threads = [scene.thread(f"client {i}", end_ms=end_ms) for i in range(3)]
    for turn in range(30):
        start = turn * 30.0
        for place, thread in enumerate(threads):
            begin = start if (place + turn) % 3 else start + 15.0
            if begin > start:
                scene.wait(
                    lock, thread, start, begin, waiting, by=threads[0], kind=WaitKind.CONTENTION
                )
            scene.hold(lock, thread, begin, start + 29.0, stack=working, waiters=1)
    for place, thread in enumerate(threads):
        back = 30 - kept * (place == 0) + kept * (by_others and place == 1)
        scene.builder.add_counter(
            lock,
            thread,
            acquires=30,
            contended=10,
            wait_ns=150 * MS,
            hold_ns=700 * MS,
            hold_histogram=returned(back),
        )
    return scene, lock


def test_permits_that_threads_end_with_are_lost() -> None:
    scene, lock = pool(kept=3)
    found = scene.finding("capacity-limit")

    assert never_returned(scene.trace(), [lock]) == 3
    assert found is not None
    assert "3 permits" in found.summary
    assert "without giving them back" in found.summary
    assert "limit is too low" not in found.summary
    assert found.evidence["permits_not_returned"] == 3
    assert found.remedies[0].kind == "give-back"


def test_permits_that_all_come_back_are_too_few() -> None:
    scene, lock = pool(kept=0)
    found = scene.finding("capacity-limit")

    assert never_returned(scene.trace(), [lock]) == 0
    assert found is not None
    assert "limit is too low" in found.summary
    assert [remedy.kind for remedy in found.remedies] == ["raise", "shorten"]


def test_permits_that_others_give_back_are_not_lost() -> None:
    scene, lock = pool(kept=3, by_others=True)

    assert never_returned(scene.trace(), [lock]) == 0


def test_permits_of_threads_that_go_on_are_not_lost() -> None:
    scene, lock = pool(kept=3, end_ms=0.0)

    assert never_returned(scene.trace(), [lock]) == 0
