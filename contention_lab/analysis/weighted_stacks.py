"""Waiting, spinning or holding as stacks with weights: what flame graphs and exports are made of.

A lock is one more step of a stack: the innermost where the stack is that of whoever used the lock,
the outermost where it is the culprit's, so that "this lock, because of that code" can be read
down. It merges nothing but equal stacks; `flame` makes a tree of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from contention_lab.analysis.blame import UNRECORDED
from contention_lab.analysis.blame import blame as blame_of
from contention_lab.analysis.distinct import grouped
from contention_lab.analysis.gil_blame import caused_ns, ns_by_stack
from contention_lab.analysis.intervals import hold_spans, lengths_ns, lock_waits
from contention_lab.analysis.parties import GIL, culprit_stacks, culprit_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Lock, Trace
    from contention_lab.trace.records import Records

View = Literal["victim", "culprit", "pair", "spin", "hold", "gil", "gil-holder"]
VIEWS: Final[tuple[View, ...]] = ("victim", "culprit", "spin", "hold", "gil", "gil-holder")
"""Those that others read, too; `pair` is for people."""

MAX_DEPTH: Final = 400
"""Frames beyond it, from the outer end, are folded into one: readers may recurse."""


class Step(NamedTuple):
    """One step of a stack: a function, a lock, or a remark in parentheses.

    Attributes
    ----------
    name
        Qualified name of the function; of a lock its label.
    file
        Its file; of a lock the file it was made in. Empty for a remark.
    line
        The line being executed; of a lock the line it was made at. 0 where unknown.
    first_line
        The line the function starts at.
    """

    name: str
    file: str
    line: int
    first_line: int


class LockStep(Step):
    """A step that is a lock."""

    __slots__ = ()


class WeightedStack(NamedTuple):
    """A stack and what it costs.

    Attributes
    ----------
    steps
        Outermost first.
    ns
        Time, above 0.
    events
        Waits or holds it is the time of; a wait that several holds caused counts in each.
    thread
        Whose stack it is, where that was asked for and there are not too many: of a pair, who
        waits.
    """

    steps: tuple[Step, ...]
    ns: int
    events: int
    thread: int | None = None


HAND_OFF_STEP: Final = Step("(hand-off: no recorded hold)", "", 0, 0)
UNRECORDED_STEP: Final = Step("(hold not recorded)", "", 0, 0)
GIL_STEP: Final = Step(GIL.function, "", 0, 0)
NO_PYTHON_STEP: Final = Step("(not running Python, or no stack)", "", 0, 0)
SMALL_STEP: Final = Step("(code that each took too little to be told apart)", "", 0, 0)
GIL_FREE_STEP: Final = Step("(hand-over: no recorded hold)", "", 0, 0)
CUT_STEP: Final = Step("(outer frames not recorded)", "", 0, 0)


def weighted_stacks(
    trace: Trace,
    view: View,
    blame: Blame | None = None,
    *,
    by_thread: bool = False,
    most: int | None = None,
) -> Iterator[WeightedStack]:
    """Yield the stacks of one view; equal ones may come more than once.

    Parameters
    ----------
    trace
        A trace.
    view
        `victim`: time waited for locks, by the waiter's stack. `culprit`: the same time, by lock
        and then the stack of whoever held it (while it held it if that was seen, else at its
        release). `pair`: the same time, by the waiter's stack, the lock, and the holder's stack,
        innermost first, so that the two places meet at the lock. `spin`: time in spin loops, by the
        waiter's stack. `hold`: time that recorded holds lasted, by the stack at the release (at
        level `profile`: only of holds that blocked somebody). `gil`: time waited for the GIL, by
        the waiter's stack, and `gil-holder`: the same time, by where whoever had it gave it up;
        both need the layer below Python.
    blame
        Of this trace, for the views `culprit` and `pair`; made if it is not given.
    by_thread
        Tell stacks of different threads apart.
    most
        Stacks wanted at most; all by default. Where there are more, threads are not told apart.
        Of pairs where that is not enough, the lightest keep who waits for which lock alone, and
        end in `SMALL_STEP`.

    Raises
    ------
    ValueError
        There is no such view.
    """
    if view == "hold":
        return _of_holds(trace, by_thread=by_thread, most=most)
    if view in ("culprit", "pair"):
        divided = blame_of(trace) if blame is None else blame
        if view == "pair":
            return _of_pairs(trace, divided, by_thread=by_thread, most=most)
        return _of_culprits(trace, divided, by_thread=by_thread, most=most)
    if view in ("victim", "spin"):
        return _of_waits(trace, spinning=view == "spin", by_thread=by_thread, most=most)
    if view in ("gil", "gil-holder"):
        return _of_the_gil(trace, holders=view == "gil-holder", by_thread=by_thread)
    raise ValueError(f"no view {view!r}: choose {', '.join(VIEWS[:-1])} or {VIEWS[-1]}")


def _of_waits(
    trace: Trace, *, spinning: bool, by_thread: bool, most: int | None
) -> Iterator[WeightedStack]:
    book = _Book(trace)
    spans = lock_waits(trace)
    waits = trace.waits[spans.index]
    weights = waits["spin_ns"] if spinning else spans.length_ns
    sums = _Sums(waits["lock"], waits["stack"])
    if by_thread:
        sums = sums.parted(waits["thread"], most)
    for (lock, stack, *thread), ns, events in sums.of(weights):
        yield WeightedStack((*book.steps(stack, 0), book.lock(lock)), ns, events, *thread)


def _of_holds(trace: Trace, *, by_thread: bool, most: int | None) -> Iterator[WeightedStack]:
    book = _Book(trace)
    holds = trace.holds
    site = np.where(holds["stack"] == 0, holds["site"], 0)
    sums = _Sums(holds["lock"], holds["stack"], site)
    if by_thread:
        sums = sums.parted(holds["thread"], most)
    for (lock, stack, site_id, *thread), ns, events in sums.of(hold_spans(trace).length_ns):
        yield WeightedStack((*book.steps(stack, site_id), book.lock(lock)), ns, events, *thread)


def _of_culprits(
    trace: Trace, blame: Blame, *, by_thread: bool, most: int | None
) -> Iterator[WeightedStack]:
    book = _Book(trace)
    pairs = blame.pairs
    sums = _Sums(trace.wait_columns["lock"][pairs["wait"]], *_holding(trace, blame))
    if by_thread:
        sums = sums.parted(culprit_threads(trace, blame), most)
    for weights, last in _parts_of(pairs):
        for (lock, kind, stack, site, *whose), ns, events in sums.of(weights):
            steps = book.holding(kind, stack, site, *last)
            yield WeightedStack((book.lock(lock), *steps), ns, events, *whose)


def _of_pairs(
    trace: Trace, blame: Blame, *, by_thread: bool, most: int | None
) -> Iterator[WeightedStack]:
    book = _Book(trace)
    pairs, waits = blame.pairs, trace.wait_columns
    waiting = _Sums(waits["lock"][pairs["wait"]], waits["stack"][pairs["wait"]])
    sums = waiting.parted_by(_Sums(*_holding(trace, blame)))
    if by_thread:
        sums = sums.parted(waits["thread"][pairs["wait"]], most)
    small = sums.lightest(pairs["ns"], most)
    for weights, last in _parts_of(pairs):
        shown = weights if small is None else weights * ~small
        for (lock, victim, kind, stack, site, *whose), ns, events in sums.of(shown):
            steps = reversed(book.holding(kind, stack, site, *last))
            whole = (*book.steps(victim, 0), book.lock(lock), *steps)
            yield WeightedStack(whole, ns, events, *whose)
    if small is not None:
        for (lock, victim), ns, events in waiting.of(pairs["ns"] * small):
            whole = (*book.steps(victim, 0), book.lock(lock), SMALL_STEP)
            yield WeightedStack(whole, ns, events)


def _holding(trace: Trace, blame: Blame) -> tuple[npt.NDArray[np.integer[Any]], ...]:
    """Return of each pair what its hold is, below 0 where unrecorded, its stack, and else site."""
    pairs = blame.pairs
    stack, _ = culprit_stacks(trace, blame)
    site = np.zeros(len(pairs), dtype=np.uint32)
    held, lost = pairs["hold"] >= 0, pairs["hold"] == UNRECORDED
    site[held] = trace.hold_columns["site"][pairs["hold"][held]]
    site[lost] = trace.wait_columns["holder_site"][pairs["wait"][lost]]
    site[stack != 0] = 0
    return np.minimum(pairs["hold"], 0).astype(np.int8), stack, site


def _parts_of(pairs: Records) -> Iterator[tuple[npt.NDArray[Any], tuple[Step, ...]]]:
    """Yield the time that holders ran, and that for which they waited for the GIL."""
    yield pairs["ns"] - pairs["gil_ns"], ()
    yield pairs["gil_ns"], (GIL_STEP,)


def _of_the_gil(trace: Trace, *, holders: bool, by_thread: bool) -> Iterator[WeightedStack]:
    waits, holds = trace.gil_waits, trace.gil_holds
    events, weights = (holds, caused_ns(waits, holds)) if holders else (waits, lengths_ns(waits))
    if holders:
        free_ns = int(lengths_ns(waits).sum()) - int(weights.sum())
        if free_ns > 0:
            yield WeightedStack((GIL_FREE_STEP,), free_ns, len(waits))
    book = _Book(trace)
    threads = np.unique(events["thread"]).tolist() if by_thread else [None]
    for thread in threads:
        mine = events["thread"] == thread if by_thread else np.ones(len(events), dtype=np.bool_)
        own, weight = events[mine], weights[mine]
        count = ns_by_stack(own, np.ones(len(own), dtype=np.int64))
        for stack, ns in ns_by_stack(own, weight).items():
            steps = book.steps(stack, 0) or (NO_PYTHON_STEP,)
            yield WeightedStack(steps, ns, count[stack], thread)


class _Sums:
    """Records by the combination of values that they have in some columns."""

    def __init__(self, *columns: npt.NDArray[np.integer[Any]]) -> None:
        self._columns = columns
        self._count, self._which = grouped(*columns)

    def parted(self, column: npt.NDArray[np.integer[Any]], most: int | None) -> _Sums:
        """Return combinations with one more column, or these if that makes more than `most`."""
        if most is not None and self._count > most:
            return self
        more = self.parted_by(_Sums(column))
        return self if most is not None and more._count > most else more

    def parted_by(self, other: _Sums) -> _Sums:
        """Return the combinations of both."""
        both = _Sums(self._which.astype(np.int64) * max(1, other._count) + other._which)
        both._columns = (*self._columns, *other._columns)
        return both

    def lightest(self, weights: npt.NDArray[Any], most: int | None) -> npt.NDArray[np.bool_] | None:
        """Return which records have none of the `most` heaviest combinations; None if all have."""
        if most is None or self._count <= most:
            return None
        totals = np.bincount(self._which, weights=weights, minlength=self._count)
        small = np.ones(self._count, dtype=np.bool_)
        small[np.argpartition(-totals, most)[:most]] = False
        found: npt.NDArray[np.bool_] = small[self._which]
        return found

    def of(self, weights: npt.NDArray[Any]) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Yield combinations, the sum of their weights, if above 0, and how many have some."""
        if not weights.any():
            return
        totals = np.bincount(self._which, weights=weights, minlength=self._count)
        counts = np.bincount(self._which[weights > 0], minlength=self._count)
        one = np.zeros(self._count, dtype=np.int64)
        one[self._which] = np.arange(len(self._which))
        there = np.flatnonzero(totals > 0)
        values = (column[one[there]].tolist() for column in self._columns)
        yield from zip(
            zip(*values, strict=True),
            totals[there].astype(np.int64).tolist(),
            counts[there].tolist(),
            strict=True,
        )


class _Book:
    """The steps of the stacks and locks of a trace, each made once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._steps: dict[tuple[int, int], tuple[Step, ...]] = {}
        self._locks: dict[int, LockStep] = {}

    def steps(self, stack: int, site: int) -> tuple[Step, ...]:
        """Return the calls of a stack, outermost first; of a site if there is no stack."""
        found = self._steps.get((stack, site))
        if found is None:
            found = self._steps[stack, site] = _steps(self._trace, stack, site)
        return found

    def holding(self, kind: int, stack: int, site: int, *last: Step) -> tuple[Step, ...]:
        """Return the calls of a holder, with what is not known of it at the end."""
        steps = (*self.steps(stack, site), *last)
        if kind < 0:
            return (*steps, UNRECORDED_STEP if kind == UNRECORDED else HAND_OFF_STEP)
        return steps

    def lock(self, lock: int) -> LockStep:
        """Return the step of a lock."""
        found = self._locks.get(lock)
        if found is None:
            found = self._locks[lock] = _lock_step(self._trace.lock(lock))
        return found


def _steps(trace: Trace, stack: int, site: int) -> tuple[Step, ...]:
    """Return the calls of a stack, outermost first; of a site if there is no stack."""
    frames = trace.stack(stack)
    if not frames and site in trace.frames:
        frames = (trace.frames[site],)
    steps = tuple(
        Step(frame.function, frame.filename, frame.line, frame.first_line)
        for frame in reversed(frames[:MAX_DEPTH])
    )
    if len(frames) > MAX_DEPTH or stack in trace.truncated_stacks:
        return (CUT_STEP, *steps)
    return steps


def _lock_step(lock: Lock) -> LockStep:
    if lock.site is None:
        return LockStep(lock.label, "", 0, 0)
    return LockStep(lock.label, lock.site.filename, lock.site.line, lock.site.line)
