"""Which lock remedies are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers_scene import queue_of_workers

from contention_lab.diagnosis import diagnose
from contention_lab.diagnosis.worst_lock import worst_lock
from contention_lab.trace import WaitKind, load

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace
    from contention_lab.trace.builder import TraceBuilder


def written(builder: TraceBuilder, folder: Path) -> Trace:
    builder.write(folder / "made.clt")
    return load(folder / "made.clt")


def test_the_accused_lock_is_the_worst(tmp_path: Path) -> None:
    trace = written(queue_of_workers(), tmp_path)

    (lock,) = worst_lock(trace, diagnose(trace))

    assert trace.lock(lock).label == "store"


def test_the_end_of_a_thread_is_no_lock(tmp_path: Path) -> None:
    builder = queue_of_workers(1)
    ended = builder.add_lock("threading.Thread")
    main = builder.add_thread(is_main=True)
    builder.add_wait(ended, main, 0, 8_000_000, kind=WaitKind.COORDINATION)
    trace = written(builder, tmp_path)

    assert worst_lock(trace, diagnose(trace)) == ()
