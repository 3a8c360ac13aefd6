"""A plot in two sizes, of which the style sheet shows the one that fits the window.

Text in a picture shrinks with the picture; drawing it twice keeps it readable on a phone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from markupsafe import Markup

WIDE: Final = (640, 390)
NARROW: Final = (340, 320)


@dataclass(frozen=True, slots=True)
class PlotPair:
    """Inline SVG for wide and narrow windows; empty where there is nothing to plot."""

    wide: Markup | str
    narrow: Markup | str


def plot_pair(draw: Callable[[str, int, int, str], Markup | None], identifier: str) -> PlotPair:
    """Draw twice: `draw(identifier, width, height, css class)`."""
    return PlotPair(
        draw(f"{identifier}-wide", *WIDE, "wide") or "",
        draw(f"{identifier}-narrow", *NARROW, "narrow") or "",
    )
