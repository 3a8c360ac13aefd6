"""A batch of work, taken from a trace or changed by a remedy, to be run by any number of threads.

With the recorded number of threads each does what it did; with another number, the crew's work is
cut into pieces at moments in which no lock was held, which whoever is free takes in the recorded
order, or which are dealt out in that order, if the threads seem to have had their shares from the
start (`dealing.py`). It is the steps that are kept; what they cost in waiting is found anew each
time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.dealing import was_dealt
from contention_lab.simulate.capacity import capacity, is_semaphore
from contention_lab.simulate.history import AWAITED, history, history_of
from contention_lab.simulate.packing import Op
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.retaken import GIL_FIRST
from contention_lab.simulate.time_use import has_gil
from contention_lab.simulate.workload import kind_of_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contention_lab.simulate.batch.crew import Crew
    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.history import History
    from contention_lab.simulate.lock_policy import LockPolicy
    from contention_lab.simulate.program import Step
    from contention_lab.trace import Trace

SEMAPHORE: Final = "semaphore"
"""The kind of lock that has permits."""
STEPS: Final = 120_000
"""Steps that a batch keeps; of more, stretches are taken evenly from all of the recording."""
STRETCHES: Final = 24
"""Stretches of a thread's time that stand for all of it."""
STARVED: Final = 0.2
"""Share of the crew's time that it waited for others to do something, from which on these others
count for when the batch ends."""
TOLD: Final = 0.05
"""Share of the time spent waiting for others to do something from which on it is told."""
EVENTS: Final = 400_000
"""Recorded waits and holds that are read; of more, those in a stretch from the middle."""


@dataclass(frozen=True, slots=True)
class LockKind:
    """What a lock is.

    Attributes
    ----------
    kind
        The kind of its policy.
    gil_first
        As in `LockPolicy`.
    permits
        Of a semaphore.
    """

    kind: str
    gil_first: bool = False
    permits: int = 1

    @property
    def spins(self) -> bool:
        """Waiters never sleep."""
        policy = POLICIES[self.kind]
        found = policy.lock(policy.defaults)
        return found.backoff_ns[1] > 0.0 or found.spin_ns == math.inf

    def policy(self, calibration: Calibration) -> LockPolicy:
        """Return the policy with the costs of a host."""
        policy = POLICIES[self.kind]
        found = policy.lock(calibration.costs_of(policy))
        if self.kind == SEMAPHORE:
            return replace(found, permits=self.permits)
        return replace(found, gil_first=True) if self.gil_first else found


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a batch runs.

    Attributes
    ----------
    threads
        How many threads share the crew's work; None: those recorded, each its own.
    cores
        Cores of the machine.
    calibration
        What locks and the scheduler cost there.
    gil
        Whether there is a GIL, for work that was recorded with one.
    """

    threads: int | None
    cores: int
    calibration: Calibration
    gil: bool = True


@dataclass(frozen=True, slots=True)
class BatchTime:
    """How long a batch took.

    Attributes
    ----------
    elapsed_ns
        From the beginning of the first to the end of the last thread of the crew.
    used
        Share of the time that each lock was owned, by id; 0 is the GIL.
    waited_ns
        Waiting for each lock, of all threads together, by id; 0 is the GIL.
    cores_at_work
        How many cores were, on average; those of threads that spin count.
    """

    elapsed_ns: float
    used: Mapping[int, float]
    waited_ns: Mapping[int, float]
    cores_at_work: float


@dataclass(frozen=True, slots=True)
class Batch:
    """The work of a crew, and of the threads beside it.

    Attributes
    ----------
    crew, others
        Steps of each thread; targets are ids of locks.
    kinds
        What each lock is, by id.
    names
        What to call the locks, by id.
    gil
        The recorded interpreter had a GIL.
    scale
        How many times these steps the recorded work is.
    threads
        How many members of the crew there were at a time.
    each_its_own
        The crew's threads all lived at the same time, so that each can go through its own steps.
    dealt
        The work was dealt out to the crew beforehand, as it is to any other number of threads.
    awaits_others
        The crew waited for the others so much that these count for when the batch ends.
    servers
        (id, needs the GIL) of channels, each with a thread that serves it.
    serving_ns
        Python code that a server runs for each request, beside its work.
    closing
        Steps to go through once all other work was taken; targets are ids.
    notes
        What the trace does not tell, a sentence each.
    """

    crew: tuple[History, ...]
    others: tuple[History, ...]
    kinds: Mapping[int, LockKind]
    names: Mapping[int, str]
    gil: bool
    scale: float
    threads: int
    each_its_own: bool = True
    dealt: bool = False
    awaits_others: bool = False
    servers: tuple[tuple[int, bool], ...] = ()
    serving_ns: float = 0.0
    closing: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def work_ns(self) -> float:
        """What the crew's steps take, waits not counted, of all threads together, in ns."""
        return self.scale * sum(float(one.spent_ns[-1]) for one in self.crew)

    @property
    def next_id(self) -> int:
        """An id above those of all locks."""
        return max(self.kinds, default=0) + 1

    def with_all(self, change: Callable[[History], History]) -> Batch:
        """Return the same batch with the steps of each thread changed."""
        crew, others = (tuple(map(change, part)) for part in (self.crew, self.others))
        return replace(self, crew=crew, others=others)

    def with_kind(self, ids: range | tuple[int, ...], kind: LockKind, name: str = "") -> Batch:
        """Return the same batch with locks of another kind, or more locks."""
        kinds = {**self.kinds, **dict.fromkeys(ids, kind)}
        names = {**self.names, **(dict.fromkeys(ids, name) if name else {})}
        return replace(self, kinds=kinds, names=names)


def batch_of(trace: Trace, crew: Crew, *, events: int = EVENTS, steps: int = STEPS) -> Batch:
    """Return the batch that a crew worked on.

    Parameters
    ----------
    trace
        The recording, of level `profile` or `trace`.
    crew
        Its crew.
    events
        Recorded waits and holds to read at most; of more, a stretch from the middle stands for all.
    steps
        Steps to keep at most.
    """
    span = _span(trace, crew, events)
    read = [history(trace, thread, span) for thread in crew.members]
    beside = [history(trace, thread, span) for thread in crew.others]
    whole = sum(float(one.spent_ns[-1]) for one in read)
    awaited = sum(_awaited_ns(one) for one in read)
    all_awaited = awaited + sum(_awaited_ns(one) for one in beside)
    all_time = whole + sum(float(one.spent_ns[-1]) for one in beside)
    scale = crew.wall_ns / max(1, span[1] - span[0])
    own = [_without_waits(one) for one in read]
    kept = sum(len(one.ops) for one in own) + sum(len(one.ops) for one in beside)
    share = min(1.0, steps / max(1, kept))
    members = tuple(_thinned(one, share) for one in own)
    others = tuple(_thinned(_without_waits(one), share) for one in beside)
    before = sum(float(one.spent_ns[-1]) for one in own)
    after = sum(float(one.spent_ns[-1]) for one in members)
    used = {int(id_) for one in (*members, *others) for id_ in np.unique(_targets(one))}
    return Batch(
        crew=members,
        others=others,
        kinds={id_: kind_of(trace, id_) for id_ in sorted(used)},
        names={id_: trace.lock(id_).label for id_ in used},
        gil=has_gil(trace),
        scale=scale * (before / after if after > 0 else 1.0),
        threads=crew.threads,
        each_its_own=len(crew.members) == crew.threads,
        dealt=len(crew.members) == crew.threads
        and was_dealt(read, [_end_ns(trace, one) for one in crew.members], crew.wall_ns),
        awaits_others=awaited > STARVED * max(whole, 1.0),
        notes=_notes(trace, all_awaited / max(all_time, 1.0)),
    )


def _end_ns(trace: Trace, thread: int) -> int:
    return trace.thread(thread).end_ns or trace.duration_ns


def kind_of(trace: Trace, id_: int) -> LockKind:
    """Return what a recorded lock is, by its type."""
    lock = trace.lock(id_)
    if is_semaphore(lock.type):
        return LockKind(SEMAPHORE, permits=max(1, capacity(trace, id_)))
    return LockKind(kind_of_type(lock.type), lock.type in GIL_FIRST)


def _span(trace: Trace, crew: Crew, events: int) -> tuple[int, int]:
    """Return the time to read: all, or as much of the middle as holds so many events."""
    found = len(trace.wait_columns) + len(trace.hold_columns)
    if found <= events:
        return crew.began_ns, crew.ended_ns
    length = int(crew.wall_ns * events / found)
    began = crew.began_ns + (crew.wall_ns - length) // 2
    return began, began + length


def _awaited_ns(one: History) -> float:
    return float(one.ops["ns"][one.holds == AWAITED].sum())


def _without_waits(one: History) -> History:
    """Return a history without waits for others to do something: they wait while these work."""
    keep = one.holds != AWAITED
    return history_of(one.thread, one.ops[keep], one.holds[keep], one.use)


def _thinned(one: History, share: float) -> History:
    """Return about a share of a history, as stretches taken evenly from all of it."""
    if share >= 1.0 or len(one.cuts) < 2 * STRETCHES:
        return one
    edges = np.linspace(0.0, float(one.spent_ns[-1]), STRETCHES + 1)
    first = np.searchsorted(one.spent_ns, edges[:-1]).clip(0, len(one.cuts) - 1)
    last = np.searchsorted(one.spent_ns, edges[:-1] + share * np.diff(edges))
    keep = np.zeros(len(one.ops), np.bool_)
    for start, stop in zip(first, np.minimum(last, len(one.cuts) - 1), strict=True):
        keep[one.cuts[start] : one.cuts[stop]] = True
    return history_of(one.thread, one.ops[keep], one.holds[keep], one.use)


def _targets(one: History) -> np.ndarray:
    targets: np.ndarray = one.ops["target"][one.ops["code"] == Op.ACQUIRE]
    return targets


def _notes(trace: Trace, awaited: float) -> tuple[str, ...]:
    notes = []
    if awaited > TOLD:
        notes.append(
            f"waits for others to do something (conditions, events, queues), {awaited:.0%} of the "
            "threads' time, are left out: where work has an order to keep, times may be longer"
        )
    if any(thread.is_task for thread in trace.threads.values()):
        notes.append("tasks of an event loop are simulated as the thread they run on")
    limited: dict[bool, set[str]] = {True: set(), False: set()}
    for id_, lock in trace.locks.items():
        if is_semaphore(lock.type):
            limited[capacity(trace, id_) > 0].add(lock.label)
    if limited[True]:
        named = ", ".join(f"`{label}`" for label in sorted(limited[True]))
        notes.append(f"as many permits of {named} are taken to exist as were out at a time")
    if others := limited[False] - limited[True]:
        named = ", ".join(f"`{label}`" for label in sorted(others))
        notes.append(
            f"waits for permits of {named} are not simulated: nobody waited for one, others "
            "gave them back, or tasks took them; times may be longer"
        )
    if not len(trace.states):
        notes.append("nobody sampled what threads did: time off the core counts as waiting for one")
    if has_gil(trace) and not len(trace.gil) and not len(trace.gil_totals):
        notes.append("nobody sampled the GIL: all code counts as Python code")
    return tuple(notes)
