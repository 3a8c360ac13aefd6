"""The threads among which a program's work can be spread, told from those with a job of their own.

Threads of one kind have the same name but for numbers (`Thread-3 (worker)`, `pool_0`). The crew is
the kind that uses the lock in question most, or that works most. What others did meanwhile, a
producer or the main thread, is simulated beside it and spread over nobody; what happened before the
crew began and after it ended stays as it was.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis import thread_time, working

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contention_lab.analysis import ThreadTime
    from contention_lab.trace import Trace

BESIDE: Final = 0.02
"""Share of the crew's time that another thread must have worked for to be simulated at all."""
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Crew:
    """The threads that share the work.

    Attributes
    ----------
    members
        Their ids, in order.
    others
        Ids of threads that worked meanwhile.
    threads
        How many members there were at a time, at most.
    began_ns, ended_ns
        When the first of them began and the last ended.
    name
        What they are called, `#` for numbers.
    """

    members: tuple[int, ...]
    others: tuple[int, ...]
    threads: int
    began_ns: int
    ended_ns: int
    name: str

    @property
    def wall_ns(self) -> int:
        """How long they took."""
        return self.ended_ns - self.began_ns


def crew_of(trace: Trace, locks: Collection[int] = ()) -> Crew | None:
    """Return the crew of a recording; None if no thread worked.

    Parameters
    ----------
    trace
        The recording.
    locks
        Ids of the lock in question; without any, the threads that worked most.
    """
    times = [time for time in working(thread_time(trace)) if time.wall_s > 0]
    if not times:
        return None
    used = _acquires(trace, locks)
    kinds: dict[str, list[ThreadTime]] = defaultdict(list)
    for time in times:
        # The main thread is a kind of its own, whatever it is called.
        name = "main" if time.thread.is_main else _NUMBERS.sub("#", time.thread.name)
        kinds[name].append(time)

    def weight(kind: str) -> tuple[bool, float]:
        mine = kinds[kind]
        acquired = sum(used.get(time.thread.id, 0) for time in mine)
        worked = sum(time.wall_s - time.coordination_s for time in mine)
        return len(mine) > 1 and acquired > 0, acquired if locks else worked

    name = max(kinds, key=weight)
    chosen = kinds[name]
    if len(chosen) == 1:
        # All are kinds of their own: those that use the lock; without one, all but the main thread.
        others = [time for time in times if time.thread.id in used or not locks]
        apart = [time for time in others if not time.thread.is_main]
        chosen = (apart if len(apart) > 1 else others) or chosen
    return _crew(trace, times, chosen, name)


def _crew(
    trace: Trace, times: Sequence[ThreadTime], chosen: Sequence[ThreadTime], name: str
) -> Crew:
    began = np.array([time.thread.start_ns for time in chosen], np.int64)
    lasted = np.array([round(time.wall_s * 1e9) for time in chosen], np.int64)
    ended = began + lasted
    members = {time.thread.id for time in chosen}
    span = int(began.min()), int(ended.max())
    others = []
    for time in times:
        thread = time.thread
        lived = min(thread.end_ns or trace.duration_ns, span[1]) - max(thread.start_ns, span[0])
        awake = min(lived / 1e9, time.wall_s - time.coordination_s)
        if thread.id not in members and awake > BESIDE * (span[1] - span[0]) / 1e9:
            others.append(thread.id)
    return Crew(
        tuple(sorted(members)),
        tuple(sorted(others)),
        _at_a_time(began, ended),
        *span,
        name,
    )


def _at_a_time(began: np.ndarray, ended: np.ndarray) -> int:
    """Return how many spans overlap, at most; one that begins as another ends does not."""
    times = np.concatenate([ended, began])
    change = np.concatenate([np.full(len(ended), -1), np.ones(len(began), np.int64)])
    order = np.lexsort((change, times))
    return max(1, int(np.cumsum(change[order]).max()))


def _acquires(trace: Trace, locks: Collection[int]) -> dict[int, int]:
    counters = trace.counters
    mine = counters[np.isin(counters["lock"], [*locks])]
    found: dict[int, int] = defaultdict(int)
    for row in mine:
        found[int(row["thread"])] += int(row["acquires"]) + int(row["contended"])
    return found
