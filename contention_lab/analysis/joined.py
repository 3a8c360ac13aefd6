"""Which thread it is that a join waits for.

A join is recorded on an entry with the thread's name, and several threads may have had that name
one after another. Where two had it at a time, nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import coordination_waits

if TYPE_CHECKING:
    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Thread, Trace

THREAD: Final = "threading.Thread"
"""How the type of such an entry begins."""


def joins(trace: Trace) -> Spans:
    """Return the waits for threads to end."""
    waits = coordination_waits(trace)
    threads = [lock.id for lock in trace.locks.values() if lock.type.startswith(THREAD)]
    return waits.where(np.isin(waits.lock, threads))


class Joined:
    """The threads of a trace, by what joins know of them.

    Parameters
    ----------
    trace
        A trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._by_name: dict[str, list[Thread]] = defaultdict(list)
        for known in trace.threads.values():
            self._by_name[known.name].append(known)

    def at(self, lock: int, time_ns: int) -> int | None:
        """Return the thread alive at a moment that the entry stands for; None if that is not known.

        Parameters
        ----------
        lock
            Id of the entry.
        time_ns
            The moment.
        """
        alive = [
            one.id
            for one in self._by_name[self._trace.lock(lock).name]
            if one.start_ns <= time_ns and not 0 < one.end_ns <= time_ns
        ]
        return alive[0] if len(alive) == 1 else None
