"""Labels at the right end of lines, instead of a legend.

Labels that would overlap are moved apart, in the order of their lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.report.themed_svg import paint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

FONT_PX: Final = 12
_LINE_PX: Final = 14.5
_GAP_PX: Final = 3.0
_CHARACTER_PX: Final = 6.9
"""Generous mean width of a character: the reader's font is not known here."""


@dataclass(frozen=True, slots=True)
class LineLabel:
    """Text beside the last point of a line, at `value` of the vertical axis."""

    text: str
    value: float
    role: str
    bold: bool = False

    @property
    def width(self) -> float:
        """Room the text needs, in pixels."""
        return max(len(line) for line in self.text.split("\n")) * _CHARACTER_PX

    @property
    def height(self) -> float:
        """Room the text needs, in pixels."""
        return (self.text.count("\n") + 1) * _LINE_PX


def label_lines(axes: Axes, labels: Sequence[LineLabel]) -> None:
    """Write the labels to the right of the axes, whose limits and place must be final."""
    to_pixels = axes.transData.transform
    box = axes.get_window_extent()
    middle = axes.get_xlim()[0]
    ordered = sorted(labels, key=lambda label: label.value)
    wanted = [float(to_pixels((middle, label.value))[1]) for label in ordered]
    places = spread(wanted, [label.height + _GAP_PX for label in ordered], box.y0, box.y1)
    for label, place in zip(ordered, places, strict=True):
        axes.annotate(
            label.text, (box.x1 + 8, place), xycoords="figure pixels", va="center", ha="left",
            color=paint(label.role), fontsize=FONT_PX, linespacing=1.15,
            fontweight="bold" if label.bold else "normal", annotation_clip=False,
        )  # fmt: skip


def spread(
    wanted: Sequence[float], heights: Sequence[float], low: float, high: float
) -> list[float]:
    """Centres nearest to those wanted, in order, so that no two boxes overlap.

    Parameters
    ----------
    wanted : sequence of float
        Ascending centres.
    heights : sequence of float
        Height of each box.
    low, high : float
        Where boxes should stay; left at the top if there is no room for all.
    """
    groups: list[tuple[float, float, list[int]]] = []  # centre, height, members
    for index, (centre, height) in enumerate(zip(wanted, heights, strict=True)):
        members = [index]
        while True:
            centre = max(centre, low + height / 2)
            centre = max(min(centre, high - height / 2), low + height / 2)
            if not groups or groups[-1][0] + groups[-1][1] / 2 <= centre - height / 2 + 1e-9:
                break
            other, other_height, others = groups.pop()
            total = height + other_height
            centre = (other * len(others) + centre * len(members)) / (len(others) + len(members))
            height, members = total, others + members
        groups.append((centre, height, members))
    places = [0.0] * len(wanted)
    for centre, height, members in groups:
        edge = centre - height / 2
        for index in members:
            places[index] = edge + heights[index] / 2
            edge += heights[index]
    return places
