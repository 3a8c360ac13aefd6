"""Data and words of the timeline section: intervals as short text, and the longest waits in words.

Every run of a page gets the same share of the page's room; what small ones leave goes to others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.waiters_over_time import thinned
from contention_lab.report.flame_table import fair_limit
from contention_lab.report.lock_lines import lock_site, lock_title
from contention_lab.report.packed_integers import packed, packed_steps
from contention_lab.report.quantity import count, counted, seconds
from contention_lab.report.timeline import WaitState
from contention_lab.report.timeline_intervals import coarsened
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.flame_table import FrameTable
    from contention_lab.report.point_view import PointView
    from contention_lab.report.timeline import Lane, Timeline
    from contention_lab.report.timeline_contexts import WorstWait
    from contention_lab.report.timeline_intervals import Intervals
    from contention_lab.trace import Frame, Lock, Thread

ROOM_BYTES: Final = 2_700_000
"""Of a page, for flame graphs and timelines together."""
FRAME_BYTES: Final = 20
INTERVAL_BYTES: Final = 10
"""As measured on pages."""
FEWEST: Final = 30_000
"""Intervals for which there is room always."""
MOST_OF_A_SWEEP: Final = 60_000
TABLE_ROWS: Final = 12
STACKS_TOLD: Final = 100
"""Longest waits of a page whose stacks are in it."""


@dataclass(frozen=True, slots=True)
class WorstRow:
    """A row of the table of the longest waits."""

    number: int
    """Position among the intervals that wait."""
    at_s: float
    wait_s: float
    lock: str
    lock_place: str
    thread: str
    site: str
    place: str
    holder: str
    holder_site: str
    holder_place: str


@dataclass(frozen=True, slots=True)
class TimelineText:
    """What is said of a timeline without drawing it."""

    sentence: str
    aggregated: str
    """Empty if everything is drawn as it was recorded."""
    rows: tuple[WorstRow, ...]


def room_left(frames: int, *, sweep: bool) -> int:
    """Return how many intervals a page has room for beside so many frames of flame graphs."""
    left = max(FEWEST, (ROOM_BYTES - frames * FRAME_BYTES) // INTERVAL_BYTES)
    return min(MOST_OF_A_SWEEP, left) if sweep else left


def timeline_data(
    points: Sequence[PointView], frames: FrameTable, room: int
) -> tuple[dict[str, Any], dict[str, TimelineText]]:
    """Return what the script draws of each run, by its key, and what the page says of it.

    Parameters
    ----------
    points
        The runs of the page.
    frames
        Gets the frames that it lacks.
    room
        Intervals of all runs together.
    """
    sizes = [len(point.timeline.waits) + len(point.timeline.holds) for point in points]
    limit = fair_limit(sizes, room)
    told = max(1, STACKS_TOLD // max(1, len(points)))
    drawn, said = {}, {}
    for point in points:
        line = _fitted(point.timeline, limit)
        numbers = _numbers(line)
        drawn[point.key] = _drawn(line, frames, limit, numbers[:told])
        said[point.key] = _said(line, numbers)
    return drawn, said


def _fitted(line: Timeline, limit: int) -> Timeline:
    (waits, holds), step = coarsened(
        (line.waits, line.holds), limit, line.length_ns, (line.pinned, line.pinned[:0])
    )
    return replace(line, waits=waits, holds=holds, step_ns=max(step, line.step_ns))


def _numbers(line: Timeline) -> list[tuple[int, WorstWait]]:
    """Return the longest waits with their positions among the intervals that wait."""
    waits = line.waits
    rows = {thread.id: row for row, thread in enumerate(line.threads)}
    single = (waits.count == 1) & (waits.kind <= WaitState.SPINNING)
    found = []
    for worst in line.worst:
        mine = single & (waits.start_ns == worst.start_ns) & (waits.row == rows[worst.thread.id])
        found += [(int(at), worst) for at in np.flatnonzero(mine)[:1]]
    return found


def _drawn(
    line: Timeline, frames: FrameTable, limit: int, worst: Sequence[tuple[int, WorstWait]]
) -> dict[str, Any]:
    threads, locks = _Numbered(), _Numbered()
    rows = [threads.of(thread) for thread in line.threads]

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
        )
        for one in line.wait_contexts
    ]
    holds = [
        (locks.of(one.lock), frame(one.site), calls.of(one.call or None))
        for one in line.hold_contexts
    ]
    points = max(100, min(limit // 20, 4000))
    lanes = [_lane(lane, locks, points) for lane in line.lanes]
    return {
        "length": line.length_ns,
        "step": line.step_ns,
        "rows": len(rows),
        "waits": _packed(line.waits, len(rows), len(WaitState)),
        "holds": _packed(line.holds, len(rows), 2),
        "waitContexts": _columns(waits, 5),
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


def _said(line: Timeline, numbers: Sequence[tuple[int, WorstWait]]) -> TimelineText:
    rows = tuple(_row(number, wait) for number, wait in numbers[:TABLE_ROWS])
    return TimelineText(_sentence(line), _aggregated(line), rows)


def _sentence(line: Timeline) -> str:
    about = f"{counted(len(line.threads), 'thread')} over {seconds(line.length_ns / 1e9)}"
    if line.rows_left_out:
        about += f" (those that waited and held longest; {count(line.rows_left_out)} more are left"
        about += " out)"
    if not line.wait_count:
        return f"{about}: no wait for a lock was recorded one by one."
    about += f": {counted(line.wait_count, 'wait')} for locks"
    about += f", {seconds(line.wait_ns / 1e9)} in all"
    if line.worst:
        worst = line.worst[0]
        about += f"; the longest, {seconds(worst.wait_ns / 1e9)} from "
        about += f"{seconds(worst.start_ns / 1e9)} on, was {name(worst.thread.label)}"
        about += f" waiting for “{lock_title(worst.context.lock)}”" if worst.context.lock else ""
        if worst.context.holder is not None:
            about += f", which {name(worst.context.holder.label)} held"
            about += f" in {name(worst.context.held_at.function)}" if worst.context.held_at else ""
    return about + "."


def _aggregated(line: Timeline) -> str:
    merged = [int(part.count[part.count > 1].sum()) for part in (line.waits, line.holds)]
    if not any(merged):
        return ""
    runs = sum(int(np.count_nonzero(part.count > 1)) for part in (line.waits, line.holds))
    return (
        f"Aggregated: {count(sum(merged))} waits and holds shorter than "
        f"{seconds(line.step_ns / 1e9)} are drawn as {count(runs)} paler runs, each with their "
        "number and sum. Longer ones, and the longest waits, are single."
    )


def _row(number: int, wait: WorstWait) -> WorstRow:
    context = wait.context
    lock = context.lock
    shown = context.doing or context.held_at
    return WorstRow(
        number,
        wait.start_ns / 1e9,
        wait.wait_ns / 1e9,
        lock_title(lock) if lock else "",
        lock_site(lock) if lock else "",
        name(wait.thread.label),
        *_place(context.site),
        name(context.holder.label) if context.holder else "",
        *_place(shown),
    )


def _place(frame: Frame | None) -> tuple[str, str]:
    if frame is None:
        return "", ""
    return name(frame.function), f"{short_path(frame.filename)}:{frame.line}"
