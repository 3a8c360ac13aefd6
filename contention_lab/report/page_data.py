"""Everything that a page's script needs, within the page's room: flame graphs, then timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contention_lab.report.flame_section import flame_data
from contention_lab.report.flame_table import FrameTable
from contention_lab.report.timeline_section import TimelineText, room_left, timeline_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.point_view import PointView


def page_data(
    points: Sequence[PointView], *, sweep: bool = False
) -> tuple[dict[str, Any], dict[str, TimelineText]]:
    """Return the data of the runs of a page, and what it says of their timelines by key.

    Parameters
    ----------
    points : sequence of PointView
        The runs.
    sweep : bool
        There are many runs, of which a reader looks at few: timelines get less room.
    """
    frames = FrameTable()
    runs = flame_data(points, frames)
    nodes = sum(len(tree["frame"]) for run in runs.values() for tree in run["views"].values())
    drawn, said = timeline_data(points, frames, room_left(nodes, sweep=sweep))
    for key, run in runs.items():
        run["timeline"] = drawn[key]
    return {"frames": frames.rows, "points": runs}, said
