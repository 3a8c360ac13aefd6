"""A timeline as short text in the page, from which the page's script draws it.

Columns of numbers are packed; contexts, threads, locks and calls are tables, which the columns have
positions in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.waiters_over_time import thinned
from contention_lab.report.lock_lines import lock_site, lock_title
from contention_lab.report.packed_integers import packed, packed_steps
from contention_lab.report.timeline import HoldState, WaitState
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from contention_lab.report.flame_table import FrameTable
    from contention_lab.report.timeline import Lane, Timeline
    from contention_lab.report.timeline_contexts import WorstWait
    from contention_lab.report.timeline_intervals import Intervals
    from contention_lab.trace import Frame, Lock, Thread


class Drawing:
    """A timeline whose contexts are numbered once, and which can be written after each merging.

    Parameters
    ----------
    line
        The timeline as it was made.
    """

    def __init__(self, line: Timeline) -> None:
        self._threads, self._locks = _Numbered(), _Numbered()
        self._frames, self._calls = _Numbered(), _Numbered()
        for thread in line.threads:
            self._threads.of(thread)
        locks, threads, frame = self._locks.of, self._threads.of, self._frames.of
        waits = [
            (
                locks(one.lock),
                frame(one.site),
                threads(one.holder),
                frame(one.held_at),
                frame(one.doing),
                int(one.let_go),
            )
            for one in line.wait_contexts
        ]
        holds = [
            (locks(one.lock), frame(one.site), self._calls.of(one.call or None))
            for one in line.hold_contexts
        ]
        self._waits = np.array(waits, dtype=np.int64).reshape(-1, 6)
        self._holds = np.array(holds, dtype=np.int64).reshape(-1, 3)

    def written(
        self,
        line: Timeline,
        frames: FrameTable,
        points: int,
        worst: Sequence[tuple[int, WorstWait]],
    ) -> dict[str, Any]:
        """Return what the script draws of a timeline.

        Parameters
        ----------
        line
            The timeline, perhaps with fewer intervals.
        frames
            Gets the frames that it lacks.
        points
            Of a lane, at most.
        worst
            Waits whose stacks are told, each with its position among the intervals that wait.
        """
        starts = np.array([thread.start_ns for thread in line.threads], dtype=np.uint64)
        ends = np.array([thread.end_ns for thread in line.threads], dtype=np.uint64)

        def added(stack: Sequence[Frame]) -> list[int]:
            return [frames.add(one.function, one.filename, one.line) for one in stack]

        waits, wait_contexts = _used(line.waits, self._waits)
        holds, hold_contexts = _used(line.holds, self._holds)
        used = np.unique(np.append(wait_contexts[:, _WAIT_FRAMES], hold_contexts[:, _HOLD_FRAMES]))
        used = used[used >= 0]
        table = np.full(len(self._frames.found) + 1, -1)  # the last one for -1
        table[used] = added([self._frames.found[one] for one in used.tolist()])
        wait_contexts[:, _WAIT_FRAMES] = table[wait_contexts[:, _WAIT_FRAMES]]
        hold_contexts[:, _HOLD_FRAMES] = table[hold_contexts[:, _HOLD_FRAMES]]
        lanes = [_lane(lane, self._locks, points) for lane in line.lanes]
        rows = len(line.threads)
        return {
            "length": line.length_ns,
            "step": line.step_ns,
            "rows": rows,
            "lifeStart": packed(np.minimum(starts, line.length_ns)),
            "lifeEnd": packed(np.minimum(np.where(ends, ends, line.length_ns), line.length_ns)),
            "waits": _packed(waits, rows, len(WaitState)),
            "holds": _packed(holds, rows, len(HoldState)),
            "waitContexts": [packed(column) for column in wait_contexts.T + 1],
            "holdContexts": [packed(column) for column in hold_contexts.T + 1],
            "lanes": lanes,
            "worst": [
                [number, added(wait.waits_in), added(wait.holds_in)] for number, wait in worst
            ],
            "threads": [name(one.label) for one in self._threads.found],
            "locks": [[lock_title(one), lock_site(one)] for one in self._locks.found],
            "calls": [name(one) for one in self._calls.found],
        }


_WAIT_FRAMES: Final = [1, 3, 4]
_HOLD_FRAMES: Final = [1]
"""Columns of contexts that are numbers of frames."""


class _Numbered:
    """Distinct things, numbered as they come."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._places: dict[Any, int] = {}
        self._known: dict[int, tuple[int, Any]] = {}
        """By `id`, with the thing, which therefore lives: much quicker than to compare."""

    def of(self, thing: Lock | Thread | Frame | str | None) -> int:
        """Return the number of a thing; -1 for None."""
        if thing is None:
            return -1
        known = self._known.get(id(thing))
        if known is None:
            place = self._places.setdefault(thing, len(self.found))
            if place == len(self.found):
                self.found.append(thing)
            known = self._known[id(thing)] = place, thing
        return known[0]


def _used(
    layer: Intervals, contexts: npt.NDArray[np.int64]
) -> tuple[Intervals, npt.NDArray[np.int64]]:
    """Return a layer with only the contexts that it has, the most frequent first, and these."""
    count = np.bincount(layer.context, minlength=len(contexts))
    order = np.argsort(-count, kind="stable")[: int(np.count_nonzero(count))]
    place = np.zeros(len(contexts), dtype=np.int32)
    place[order] = np.arange(len(order))
    return layer.with_context(place[layer.context]), contexts[order]


def _packed(layer: Intervals, rows: int, kinds: int) -> dict[str, Any]:
    """Return a layer: starts as steps, from 0 in each row; context and kind as one number."""
    runs = np.flatnonzero(layer.count > 1)
    step = np.diff(layer.start_ns, prepend=0)
    first = np.flatnonzero(np.diff(layer.row, prepend=-1))
    step[first] = layer.start_ns[first]
    return {
        "perRow": packed(np.bincount(layer.row, minlength=rows)),
        "start": packed(step),
        "length": packed(layer.end_ns - layer.start_ns),
        "what": packed(layer.context.astype(np.int64) * kinds + layer.kind),
        "runAt": packed_steps(runs),
        "runCount": packed(layer.count[runs]),
        "runBusy": packed(layer.busy_ns[runs]),
    }


def _lane(lane: Lane, locks: _Numbered, points: int) -> dict[str, Any]:
    time_ns, waiting = thinned(lane.time_ns, lane.waiting, points)
    return {
        "lock": locks.of(lane.lock),
        "most": int(waiting.max(initial=0)),
        "time": packed_steps(time_ns),
        "waiting": packed(waiting),
    }
