"""Recorded items of work, call by call: how long before it, how long in it, how much with the GIL.

Waiting is left out: times are CPU time of the thread's own work. The recording must have every hold
(level `trace`): a call is recognised by its place among those of its item, as the design says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.simulate.batch.crew import crew_of
from contention_lab.simulate.batch.sections import sections
from contention_lab.simulate.history import history
from contention_lab.simulate.packing import Op, OpFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contention_lab.simulate.history import History
    from contention_lab.trace import Trace

    Floats = NDArray[np.float64]


class SampleError(Exception):
    """A recording that does not have the calls it should have: one line."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Items of work that one recording has.

    Attributes
    ----------
    before_ns, within_ns
        CPU time before each call and in it, float64, shape (items, calls).
    gil
        Share of all CPU time that needed the GIL.
    threads
        How many threads worked at a time.
    wall_ns
        How long all items took.
    """

    before_ns: Floats
    within_ns: Floats
    gil: float
    threads: int
    wall_ns: float

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.before_ns)

    @property
    def item_ns(self) -> float:
        """CPU time of an item, on average."""
        return float(self.before_ns.sum() + self.within_ns.sum()) / max(1, self.items)

    def drawn(self, count: int, random: np.random.Generator) -> Sample:
        """Return a sample of `count` items drawn with replacement."""
        chosen = random.integers(0, self.items, count)
        return Sample(
            self.before_ns[chosen], self.within_ns[chosen], self.gil, self.threads, self.wall_ns
        )


def sample_of(trace: Trace, calls: int) -> Sample:
    """Return the items of a recording.

    Parameters
    ----------
    trace
        A recording of level `trace`.
    calls
        How many calls make an item; each is one hold of the lock that is held longest.

    Raises
    ------
    SampleError
        There is no such lock, or fewer holds than calls.
    """
    lock = _held_longest(trace)
    crew = crew_of(trace, (lock,))
    if crew is None:
        raise SampleError(f"{trace.path}: no thread worked")
    parts = [history(trace, thread) for thread in crew.members]
    tables = [_calls_of(one, lock, calls) for one in parts]
    before, within = (np.concatenate(part) for part in zip(*tables, strict=True))
    if not len(before):
        raise SampleError(f"{trace.path}: its threads made fewer than {calls} calls")
    return Sample(before, within, _gil_share(parts), crew.threads, float(crew.wall_ns))


def _held_longest(trace: Trace) -> int:
    counters = trace.counters
    if not len(counters):
        raise SampleError(f"{trace.path}: no lock was taken")
    locks, which = np.unique(counters["lock"], return_inverse=True)
    held = np.bincount(which, weights=counters["hold_ns"].astype(np.float64))
    return int(locks[int(held.argmax())])


def _calls_of(one: History, lock: int, calls: int) -> tuple[Floats, Floats]:
    """Return the times before and in each call of a thread, shape (items, calls)."""
    found = sections(one, (lock,))
    ns = np.where(one.ops["code"] == Op.COMPUTE, one.ops["ns"], 0.0)
    until = np.concatenate([[0.0], np.cumsum(ns)])
    begin, end = until[found.acquire], until[found.release]
    before = begin - np.concatenate([[0.0], end[:-1]])
    items = len(begin) // calls
    shape = (items, calls)
    return (
        before[: items * calls].reshape(shape),
        (end - begin)[: items * calls].reshape(shape),
    )


def _gil_share(parts: Sequence[History]) -> float:
    ops = np.concatenate([one.ops for one in parts])
    compute = ops["code"] == Op.COMPUTE
    python = compute & ((ops["flags"] & int(OpFlag.GIL)) != 0)
    return float(ops["ns"][python].sum()) / max(1.0, float(ops["ns"][compute].sum()))
