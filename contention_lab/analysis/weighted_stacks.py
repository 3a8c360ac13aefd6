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
from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.gil_blame import caused_ns, lengths_ns, ns_by_stack
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.parties import GIL, culprit_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Lock, Trace

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
        Whose stack it is, where that was asked for: of a pair, who waits.
    """

    steps: tuple[Step, ...]
    ns: int
    events: int
    thread: int = 0


HAND_OFF_STEP: Final = Step("(hand-off: no recorded hold)", "", 0, 0)
UNRECORDED_STEP: Final = Step("(hold not recorded)", "", 0, 0)
GIL_STEP: Final = Step(GIL.function, "", 0, 0)
NO_PYTHON_STEP: Final = Step("(not running Python, or no stack)", "", 0, 0)
GIL_FREE_STEP: Final = Step("(hand-over: no recorded hold)", "", 0, 0)
CUT_STEP: Final = Step("(outer frames not recorded)", "", 0, 0)


def weighted_stacks(
    trace: Trace, view: View, blame: Blame | None = None, *, by_thread: bool = False
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

    Raises
    ------
    ValueError
        There is no such view.
    """
    if view == "hold":
        return _of_holds(trace, by_thread=by_thread)
    if view in ("culprit", "pair"):
        divided = blame_of(trace) if blame is None else blame
        return _of_culprits(trace, divided, by_thread=by_thread, with_victims=view == "pair")
    if view in ("victim", "spin"):
        return _of_waits(trace, spinning=view == "spin", by_thread=by_thread)
    if view in ("gil", "gil-holder"):
        return _of_the_gil(trace, holders=view == "gil-holder", by_thread=by_thread)
    raise ValueError(f"no view {view!r}: choose {', '.join(VIEWS[:-1])} or {VIEWS[-1]}")


def _of_waits(trace: Trace, *, spinning: bool, by_thread: bool) -> Iterator[WeightedStack]:
    spans = lock_waits(trace)
    waits = trace.waits[spans.index]
    weights = waits["spin_ns"] if spinning else spans.length_ns
    columns = [waits["lock"], waits["stack"], *([waits["thread"]] if by_thread else ())]
    for (lock, stack, *thread), ns, events in _sums(weights, *columns):
        steps = (*_steps(trace, stack, 0), _lock_step(trace.lock(lock)))
        yield WeightedStack(steps, ns, events, *thread)


def _of_holds(trace: Trace, *, by_thread: bool) -> Iterator[WeightedStack]:
    holds = trace.holds
    site = np.where(holds["stack"] == 0, holds["site"], 0)
    columns = [holds["lock"], holds["stack"], site, *([holds["thread"]] if by_thread else ())]
    for (lock, stack, site_id, *thread), ns, events in _sums(hold_spans(trace).length_ns, *columns):
        steps = (*_steps(trace, stack, site_id), _lock_step(trace.lock(lock)))
        yield WeightedStack(steps, ns, events, *thread)


def _of_culprits(
    trace: Trace, blame: Blame, *, by_thread: bool, with_victims: bool
) -> Iterator[WeightedStack]:
    pairs = blame.pairs
    waits, holds = trace.waits, trace.holds
    stack, _ = culprit_stacks(trace, blame)
    site = np.zeros(len(pairs), dtype=np.int64)
    held = pairs["hold"] >= 0
    site[held] = holds["site"][pairs["hold"][held]]
    lost = pairs["hold"] == UNRECORDED
    site[lost] = waits["holder_site"][pairs["wait"][lost]]
    site[stack != 0] = 0
    victims = waits["stack"][pairs["wait"]] if with_victims else np.zeros(len(pairs), dtype=int)
    columns = [waits["lock"][pairs["wait"]], np.minimum(pairs["hold"], 0), stack, site, victims]
    if by_thread:
        thread = waits["thread"][pairs["wait"]].astype(np.int64)
        if not with_victims:
            thread[~lost] = 0
            thread[lost] = waits["holder"][pairs["wait"][lost]]
            thread[held] = holds["thread"][pairs["hold"][held]]
        columns.append(thread)
    for weights, last in ((pairs["ns"] - pairs["gil_ns"], ()), (pairs["gil_ns"], (GIL_STEP,))):
        for (lock, kind, stack_id, site_id, victim, *whose), ns, events in _sums(weights, *columns):
            steps = (*_steps(trace, stack_id, site_id), *last)
            if kind < 0:
                steps = (*steps, UNRECORDED_STEP if kind == UNRECORDED else HAND_OFF_STEP)
            if with_victims:
                steps = tuple(reversed(steps))
            waiter = _steps(trace, victim, 0) if with_victims else ()
            whole = (*waiter, _lock_step(trace.lock(lock)), *steps)
            yield WeightedStack(whole, ns, events, *whose)


def _of_the_gil(trace: Trace, *, holders: bool, by_thread: bool) -> Iterator[WeightedStack]:
    waits, holds = trace.gil_waits, trace.gil_holds
    events, weights = (holds, caused_ns(waits, holds)) if holders else (waits, lengths_ns(waits))
    if holders:
        free_ns = int(lengths_ns(waits).sum()) - int(weights.sum())
        if free_ns > 0:
            yield WeightedStack((GIL_FREE_STEP,), free_ns, len(waits))
    threads = np.unique(events["thread"]).tolist() if by_thread else [0]
    for thread in threads:
        mine = events["thread"] == thread if by_thread else np.ones(len(events), dtype=np.bool_)
        own, weight = events[mine], weights[mine]
        count = ns_by_stack(own, np.ones(len(own), dtype=np.int64))
        for stack, ns in ns_by_stack(own, weight).items():
            steps = _steps(trace, stack, 0) or (NO_PYTHON_STEP,)
            yield WeightedStack(steps, ns, count[stack], thread)


def _sums(
    weights: npt.NDArray[Any], *columns: npt.NDArray[np.integer[Any]]
) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield the combinations of values, the sum of their weights, if above 0, and their number."""
    combinations, which = distinct(*columns)
    totals = np.bincount(which, weights=weights, minlength=len(combinations))
    counts = np.bincount(which, weights=weights > 0, minlength=len(combinations))
    for combination, total, count in zip(
        combinations, totals.tolist(), counts.tolist(), strict=True
    ):
        if total > 0:
            yield combination, int(total), int(count)


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


def _lock_step(lock: Lock) -> Step:
    if lock.site is None:
        return LockStep(lock.label, "", 0, 0)
    return LockStep(lock.label, lock.site.filename, lock.site.line, lock.site.line)
