"""Everything that a page's script needs, within the page's room: flame graphs, then timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contention_lab.report.flame_section import flame_data
from contention_lab.report.flame_table import FrameTable
from contention_lab.report.timeline_section import timeline_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.point_view import PointView
    from contention_lab.report.timeline_text import TimelineText

ROOM: Final = 2_600_000
"""Characters of the data of a page."""
FRAME_CHARACTERS: Final = 20
LEAST_ROOM: Final = 400_000
"""Of timelines."""
SWEEP_ROOM: Final = 600_000
"""Of timelines of a sweep."""


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
    room = max(LEAST_ROOM, ROOM - nodes * FRAME_CHARACTERS)
    drawn, said = timeline_data(points, frames, min(room, SWEEP_ROOM) if sweep else room)
    for key, run in runs.items():
        run["timeline"] = drawn[key]
    return {"frames": frames.rows, "points": runs}, said
