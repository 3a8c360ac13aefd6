"""Data and choices of the flame graph section: the trees of all runs, within the page's budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contention_lab.report.flame_kinds import shown_kinds
from contention_lab.report.flame_table import ThreadTable, fair_limit, flatten, tree_size
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.flame_table import FrameTable
    from contention_lab.report.point_view import PointView


def flame_data(points: Sequence[PointView], frames: FrameTable) -> dict[str, Any]:
    """What the script draws of each run, by its key: its label and its trees.

    Parameters
    ----------
    points : sequence of PointView
        The runs of the page.
    frames : FrameTable
        Gets the frames that it lacks.
    """
    kinds = shown_kinds(point.flames for point in points)
    limit = fair_limit([tree_size(p.flames[kind.key]) for p in points for kind in kinds])
    found = {}
    for point in points:
        threads = ThreadTable()
        views = {
            kind.key: {
                **flatten(point.flames[kind.key], kind.key, frames, limit, threads),
                "empty": point.empty(kind),
            }
            for kind in kinds
        }
        found[point.key] = {
            "label": name(point.label),
            "views": views,
            "threads": [
                name(point.thread_names.get(one, "nobody known")) for one in threads.number
            ],
        }
    return found


def main_point(points: Sequence[PointView]) -> PointView | None:
    """The run a page opens with: the one that waited most."""
    return max(points, key=lambda point: point.waiting_s, default=None)


def groups(points: Sequence[PointView]) -> list[tuple[str, list[PointView]]]:
    """Runs by group, in their order: the choices of the run list."""
    found: dict[str, list[PointView]] = {}
    for point in points:
        found.setdefault(point.group, []).append(point)
    return list(found.items())
