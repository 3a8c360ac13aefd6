"""A timeline as short text in the page, from which the page's script draws it.

Columns of numbers are packed; contexts, threads, locks and calls are tables, which the columns have
positions in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.waiters_over_time import thinned
from contention_lab.report.lock_lines import lock_site, lock_title
from contention_lab.report.packed_integers import packed, packed_steps
from contention_lab.report.timeline import HoldState, WaitState
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.flame_table import FrameTable
    from contention_lab.report.timeline import Lane, Timeline
    from contention_lab.report.timeline_contexts import WorstWait
    from contention_lab.report.timeline_intervals import Intervals
    from contention_lab.trace import Frame, Lock, Thread


def drawn(
    line: Timeline, frames: FrameTable, points: int, worst: Sequence[tuple[int, WorstWait]]
) -> dict[str, Any]:
    """Return what the script draws of a timeline.

    Parameters
    ----------
    line
        The timeline.
    frames
        Gets the frames that it lacks.
    points
        Of a lane, at most.
    worst
        Waits whose stacks are told, each with its position among the intervals that wait.
    """
    threads, locks = _Numbered(), _Numbered()
    rows = [threads.of(thread) for thread in line.threads]
    starts = np.array([thread.start_ns for thread in line.threads], dtype=np.uint64)
    ends = np.array([thread.end_ns for thread in line.threads], dtype=np.uint64)

    def frame(one: Frame | None) -> int:
        return -1 if one is None else frames.add(one.function, one.filename, one.line)

    calls = _Numbered()
    waits = [
        (
            locks.of(one.lock),
            frame(one.site),
            threads.of(one.holder),
            frame(one.held_at),
            frame(one.doing),
            int(one.let_go),
        )
        for one in line.wait_contexts
    ]
    holds = [
        (locks.of(one.lock), frame(one.site), calls.of(one.call or None))
        for one in line.hold_contexts
    ]
    lanes = [_lane(lane, locks, points) for lane in line.lanes]
    return {
        "length": line.length_ns,
        "step": line.step_ns,
        "rows": len(rows),
        "lifeStart": packed(np.minimum(starts, line.length_ns)),
        "lifeEnd": packed(np.minimum(np.where(ends, ends, line.length_ns), line.length_ns)),
        "waits": _packed(line.waits, len(rows), len(WaitState)),
        "holds": _packed(line.holds, len(rows), len(HoldState)),
        "waitContexts": _columns(waits, 6),
        "holdContexts": _columns(holds, 3),
        "lanes": lanes,
        "worst": [
            [number, [frame(one) for one in wait.waits_in], [frame(one) for one in wait.holds_in]]
            for number, wait in worst
        ],
        "threads": [name(one.label) for one in threads.found],
        "locks": [[lock_title(one), lock_site(one)] for one in locks.found],
        "calls": [name(one) for one in calls.found],
    }


class _Numbered:
    """Distinct things, numbered as they come."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._places: dict[Any, int] = {}

    def of(self, thing: Lock | Thread | str | None) -> int:
        """Return the number of a thing; -1 for None."""
        if thing is None:
            return -1
        if thing not in self._places:
            self._places[thing] = len(self.found)
            self.found.append(thing)
        return self._places[thing]


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


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[str]:
    """Return columns of numbers from -1, one higher each."""
    table = np.array(rows, dtype=np.int64).reshape(len(rows), width) + 1
    return [packed(column) for column in table.T]


def _lane(lane: Lane, locks: _Numbered, points: int) -> dict[str, Any]:
    time_ns, waiting = thinned(lane.time_ns, lane.waiting, points)
    return {
        "lock": locks.of(lane.lock),
        "most": int(waiting.max(initial=0)),
        "time": packed_steps(time_ns),
        "waiting": packed(waiting),
    }
