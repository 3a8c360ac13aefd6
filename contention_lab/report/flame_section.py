"""Data and choices of the flame graph section: the trees of all runs, within the page's budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contention_lab.report.flame_kinds import shown_kinds
from contention_lab.report.flame_table import FrameTable, fair_limit, flatten, tree_size
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.point_view import PointView


def flame_data(points: Sequence[PointView]) -> dict[str, Any]:
    """What the script draws: `frames`, and for each run its label and its trees."""
    frames = FrameTable()
    kinds = shown_kinds(point.flames for point in points)
    limit = fair_limit([tree_size(p.flames[kind.key]) for p in points for kind in kinds])
    runs = {
        point.key: {
            "label": name(point.label),
            "views": {
                kind.key: {
                    **flatten(point.flames[kind.key], kind.key, frames, limit),
                    "empty": point.empty(kind),
                }
                for kind in kinds
            },
        }
        for point in points
    }
    return {"frames": frames.rows, "points": runs}


def main_point(points: Sequence[PointView]) -> PointView | None:
    """The run a page opens with: the one that waited most."""
    return max(points, key=lambda point: point.waiting_s, default=None)


def groups(points: Sequence[PointView]) -> list[tuple[str, list[PointView]]]:
    """Runs by group, in their order: the choices of the run list."""
    found: dict[str, list[PointView]] = {}
    for point in points:
        found.setdefault(point.group, []).append(point)
    return list(found.items())
