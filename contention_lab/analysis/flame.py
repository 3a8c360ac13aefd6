"""Flame graphs: waiting, spinning or holding as a tree of calls.

It makes the tree; drawing is the report's. The root is the whole, outermost frames are next to
it. A lock is one more level: the innermost where the stack is that of whoever used the lock, the
outermost where it is the culprit's, so that "this lock, because of that code" can be read down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from contention_lab.analysis.blame import UNRECORDED
from contention_lab.analysis.blame import blame as blame_of
from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.parties import GIL, culprit_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Lock, Trace

    Step: TypeAlias = tuple[str, str, int, int]  # name, file, line, first line
    Integers: TypeAlias = npt.NDArray[np.int64]

View = Literal["victim", "culprit", "spin", "hold"]

MAX_DEPTH: Final = 400
"""Frames beyond it, from the outer end, are folded into one: readers may recurse."""
ROOT: Final = ("all", "", 0, 0)
HAND_OFF_STEP: Final = ("(hand-off: no recorded hold)", "", 0, 0)
UNRECORDED_STEP: Final = ("(hold not recorded)", "", 0, 0)
GIL_STEP: Final = (GIL.function, "", 0, 0)
CUT_STEP: Final = ("(outer frames not recorded)", "", 0, 0)


@dataclass(frozen=True, slots=True)
class FlameNode:
    """A function as called from its parents, or a lock.

    Attributes
    ----------
    name, file
        Qualified name of the function and its file; of a lock its label and site.
    line
        The line being executed if it is always the same, else the line the function starts at.
    self_ns
        Time of this node that no child has.
    total_ns
        With all children.
    children
        The largest first.
    """

    name: str
    file: str
    line: int
    self_ns: int
    total_ns: int
    children: tuple[FlameNode, ...]


def flame(trace: Trace, view: View, blame: Blame | None = None) -> FlameNode:
    """Return the tree of one view.

    Parameters
    ----------
    trace
        A trace.
    view
        `victim`: time waited for locks, by the waiter's stack. `culprit`: the same time, by lock
        and then the stack of whoever held it (while it held it if that was seen, else at its
        release). `spin`: time in spin loops, by the
        waiter's stack. `hold`: time that recorded holds lasted, by the stack at the release (at
        level `profile`: only of holds that blocked somebody).
    blame
        Of this trace, for the view `culprit`; made if it is not given.
    """
    tree = _Branch(ROOT)
    if view == "hold":
        _add_holds(trace, tree)
    elif view == "culprit":
        _add_culprits(trace, tree, blame_of(trace) if blame is None else blame)
    elif view in ("victim", "spin"):
        _add_waits(trace, tree, spinning=view == "spin")
    else:
        raise ValueError(f"no view {view!r}: choose victim, culprit, spin or hold")
    return tree.frozen()


def _add_waits(trace: Trace, tree: _Branch, *, spinning: bool) -> None:
    spans = lock_waits(trace)
    waits = trace.waits[spans.index]
    weights = waits["spin_ns"] if spinning else spans.length_ns
    for (lock, stack), ns in _sums(weights, waits["lock"], waits["stack"]):
        tree.add([*_steps(trace, stack, 0), _lock_step(trace.lock(lock))], ns)


def _add_holds(trace: Trace, tree: _Branch) -> None:
    holds = trace.holds
    site = np.where(holds["stack"] == 0, holds["site"], 0)
    columns = holds["lock"], holds["stack"], site
    for (lock, stack, site_id), ns in _sums(hold_spans(trace).length_ns, *columns):
        tree.add([*_steps(trace, stack, site_id), _lock_step(trace.lock(lock))], ns)


def _add_culprits(trace: Trace, tree: _Branch, blame: Blame) -> None:
    pairs = blame.pairs
    stack, _ = culprit_stacks(trace, blame)
    site = np.zeros(len(pairs), dtype=np.int64)
    held = pairs["hold"] >= 0
    site[held] = trace.holds["site"][pairs["hold"][held]]
    lost = pairs["hold"] == UNRECORDED
    site[lost] = trace.waits["holder_site"][pairs["wait"][lost]]
    site[stack != 0] = 0
    columns = trace.waits["lock"][pairs["wait"]], np.minimum(pairs["hold"], 0), stack, site
    for weights, last in ((pairs["ns"] - pairs["gil_ns"], ()), (pairs["gil_ns"], (GIL_STEP,))):
        for (lock, kind, stack_id, site_id), ns in _sums(weights, *columns):
            steps = [_lock_step(trace.lock(lock)), *_steps(trace, stack_id, site_id), *last]
            if kind < 0:
                steps.append(UNRECORDED_STEP if kind == UNRECORDED else HAND_OFF_STEP)
            tree.add(steps, ns)


def _sums(
    weights: npt.NDArray[Any], *columns: npt.NDArray[np.integer[Any]]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the combinations of values, with the sum of their weights, if it is above 0."""
    combinations, which = distinct(*columns)
    totals = np.bincount(which, weights=weights, minlength=len(combinations))
    for combination, total in zip(combinations, totals.tolist(), strict=True):
        if total > 0:
            yield combination, int(total)


def _steps(trace: Trace, stack: int, site: int) -> list[Step]:
    """Return the calls of a stack, outermost first; of a site if there is no stack."""
    frames = trace.stack(stack)
    if not frames and site in trace.frames:
        frames = (trace.frames[site],)
    steps = [
        (frame.function, frame.filename, frame.line, frame.first_line)
        for frame in reversed(frames[:MAX_DEPTH])
    ]
    if len(frames) > MAX_DEPTH or stack in trace.truncated_stacks:
        steps.insert(0, CUT_STEP)
    return steps


def _lock_step(lock: Lock) -> Step:
    if lock.site is None:
        return lock.label, "", 0, 0
    return lock.label, lock.site.filename, lock.site.line, lock.site.line


@dataclass(slots=True)
class _Branch:
    """A node that still grows."""

    step: Step
    ns: int = 0
    lines: set[int] = field(default_factory=set)
    children: dict[tuple[str, str, int], _Branch] = field(default_factory=dict)

    def add(self, steps: Sequence[Step], ns: int) -> None:
        branch = self
        for step in steps:
            name, file, line, first_line = step
            key = name, file, first_line
            branch = branch.children.setdefault(key, _Branch(step))
            branch.lines.add(line)
        branch.ns += ns

    def frozen(self) -> FlameNode:
        children = tuple(
            sorted(
                (child.frozen() for child in self.children.values()),
                key=lambda node: (-node.total_ns, node.name, node.file, node.line),
            )
        )
        name, file, line, first_line = self.step
        return FlameNode(
            name,
            file,
            line if len(self.lines) <= 1 else first_line,
            self.ns,
            self.ns + sum(child.total_ns for child in children),
            children,
        )
