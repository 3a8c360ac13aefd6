"""Locks of the readers of a pipe between processes: who waits for one waits for an item.

Whoever gets an item of a `multiprocessing` queue, a worker of a pool among them, keeps the queue's
lock for readers until an item has come. The others that want one wait for that lock, which covers
nothing of the program's. The trace that is returned says so; everything that is made of it then
sees coordination. Who put the item is in another process, and not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.hand_overs import as_coordination
from contention_lab.analysis.processes import SHARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.trace import Frame, Trace

_FILE: Final = "/multiprocessing/queues.py"
_READERS: Final = ("Queue.get", "SimpleQueue.get")


def reader_locks(trace: Trace) -> frozenset[int]:
    """Return the ids of locks that are taken to get an item of a queue between processes."""
    shared = {number for number, lock in trace.locks.items() if lock.type.startswith(SHARED)}
    if not shared:
        return frozenset()
    columns = trace.wait_columns
    pairs, _ = distinct(columns["lock"], columns["stack"])
    return frozenset(
        lock for lock, stack in pairs if lock in shared and _is_reading(trace.stack(stack))
    )


def _is_reading(stack: Sequence[Frame]) -> bool:
    """Tell whether it is the lock itself that a queue's method takes, under any code."""
    for frame in stack:
        path = frame.filename.replace("\\", "/")
        if path.endswith(_FILE):
            return frame.function in _READERS
        if not path.endswith("/multiprocessing/synchronize.py"):
            return False
    return False


def with_readers(trace: Trace) -> Trace:
    """Return the trace with waits for such locks as coordination, and without their holds."""
    locks = reader_locks(trace)
    return as_coordination(trace, locks)[0] if locks else trace
