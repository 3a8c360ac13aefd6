"""Data and words of the timeline section, within the page's room.

Every run of a page may have as many intervals; what small runs leave goes to the others. If the
text is too long then, intervals of all are merged further until it fits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.report.flame_table import fair_limit
from contention_lab.report.timeline import WaitState
from contention_lab.report.timeline_intervals import coarsened
from contention_lab.report.timeline_table import Drawing
from contention_lab.report.timeline_text import TimelineText, timeline_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.flame_table import FrameTable
    from contention_lab.report.point_view import PointView
    from contention_lab.report.timeline import Timeline
    from contention_lab.report.timeline_contexts import WorstWait

INTERVAL_BYTES: Final = 8
"""The least that one takes in a page; most take 10 to 20."""
POINTS_PER_INTERVAL: Final = 1 / 20
FEWEST_POINTS: Final = 100
STACKS_TOLD: Final = 100
"""Longest waits of a page whose stacks are in it."""


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
        Characters of all runs together. It may be exceeded by what cannot be merged.
    """
    lines = [point.timeline for point in points]
    drawings = list(map(Drawing, lines))
    told = max(1, STACKS_TOLD // max(1, len(points)))
    intervals = room // INTERVAL_BYTES
    while True:
        limit = fair_limit([len(line.waits) + len(line.holds) for line in lines], intervals)
        lines = [_fitted(line, limit) for line in lines]
        numbers = [_numbers(line) for line in lines]
        most = max(FEWEST_POINTS, int(limit * POINTS_PER_INTERVAL))
        data = [
            drawing.written(line, frames, most, worst[:told])
            for drawing, line, worst in zip(drawings, lines, numbers, strict=True)
        ]
        taken = sum(map(_characters, data))
        if taken <= room or intervals < len(points):
            break
        intervals = min(intervals, sum(len(line.waits) + len(line.holds) for line in lines))
        intervals = min(intervals * 3 // 4, int(intervals * room / taken))
    keys = [point.key for point in points]
    said = map(timeline_text, lines, numbers)
    return dict(zip(keys, data, strict=True)), dict(zip(keys, said, strict=True))


def _fitted(line: Timeline, limit: int) -> Timeline:
    pinned = line.pinned, line.pinned[:0]
    (waits, holds), step = coarsened(
        (line.waits, line.holds), limit, line.length_ns, pinned, line.step_ns
    )
    return replace(line, waits=waits, holds=holds, step_ns=step)


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


def _characters(data: Any) -> int:
    """Return how long the texts of the data of a run are: nearly all of it."""
    if isinstance(data, str):
        return len(data)
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return sum(map(_characters, parts))
