"""Thread time by state as stacked bars: running, spinning, parked, waiting for the GIL.

Each bar is all the time of all threads, cut into shares, with its sum in seconds beside it: the
sums of 1 and 32 threads differ too much for one linear axis. It takes rows, so that it serves a
sweep (one bar per thread count), its variants (one bar each) and a trace (one bar per thread).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.figure import Figure

from contention_lab.report.palette import STATES, State
from contention_lab.report.quantity import seconds
from contention_lab.report.themed_svg import POINTS_PER_INCH, drawing, paint, themed_svg
from contention_lab.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup
    from matplotlib.axes import Axes

LABELLED_PX: Final = (36, 17)
"""Segments narrower or lower than this carry no figure."""
BAR: Final = 0.78
"""Thickness of a bar, as a share of the room it has."""
SOMETIMES: Final = {"coordination", "io", "other"}
"""States that are left out where no bar has any."""
LONGEST_LABEL: Final = 26
"""Characters of a label beside a bar; more would leave no room for the bar on a phone."""
_CHARACTER_PX: Final = 6.9


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label and the seconds of each state, by key.

    Attributes
    ----------
    label
        Before it.
    seconds
        Of each state.
    states
        Those there are, in the order of its parts.
    size
        What stands behind it; by default the sum of its seconds.
    """

    label: str
    seconds: Mapping[str, float]
    states: tuple[State, ...] = STATES
    size: str = ""

    @property
    def total(self) -> float:
        """Sum over the states, seconds."""
        return sum(self.seconds.get(state.key) or 0.0 for state in self.states)

    @property
    def size_said(self) -> str:
        """What stands behind it."""
        return self.size or (seconds(self.total) if self.total else "–")


def together(label: str, bars: Sequence[Bar]) -> Bar:
    """One bar with the sums of several."""
    states = bars[0].states
    sums = {state.key: sum(bar.seconds.get(state.key) or 0.0 for bar in bars) for state in states}
    return Bar(label, sums, states)


def used_states(bars: Sequence[Bar]) -> tuple[State, ...]:
    """States to explain: the four of every lock wait, and the others where there is any.

    All bars are of the same states.
    """
    return tuple(
        state
        for state in (bars[0].states if bars else STATES)
        if state.key not in SOMETIMES or any(bar.seconds.get(state.key) for bar in bars)
    )


def columns_plot(
    bars: Sequence[Bar], axis: str, identifier: str, width: int, height: int, css: str
) -> Markup:
    """Upright bars, the label below and the sum above each: a bar per thread count."""
    with drawing(identifier):
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        left, right, top, bottom = 48, 8, 46, 42
        axes = figure.add_axes(
            (left / width, bottom / height, (width - left - right) / width,
             (height - top - bottom) / height)
        )  # fmt: skip
        _stack(axes, bars, LABELLED_PX[1] / (height - top - bottom), upright=True)
        small = width / len(bars) < 62
        places = np.arange(len(bars))
        axes.set_xlim(-0.55, len(bars) - 0.45)
        axes.set_ylim(0, 1)
        axes.set_xticks(places, [visible(bar.label, 14) for bar in bars])
        axes.set_yticks((0, 0.5, 1), ("0 %", "50 %", "100 %"))
        axes.set_xlabel(axis, fontsize=12, labelpad=4)
        for place, bar in zip(places, bars, strict=True):
            axes.annotate(
                bar.size_said, (place, 1),
                xytext=(0, 5), textcoords="offset points",
                ha="center", fontsize=9.5 if small else 11.5, fontweight="bold",
            )  # fmt: skip
        axes.annotate(
            "share of all threads' time; above each bar the sum", (4, height - 12),
            xycoords="figure pixels", color=paint("muted"), fontsize=12, va="center",
        )  # fmt: skip
        _calm(axes)
        return themed_svg(figure, identifier, "Thread time by state", _in_words(bars), css)


def rows_plot(bars: Sequence[Bar], identifier: str, width: int, css: str) -> Markup:
    """Lying bars, the label before and the sum behind each: a bar per variant or thread."""
    row, top, bottom = 30, 6, 26
    height = top + bottom + row * len(bars)
    labels = [_short(bar.label) for bar in bars]
    left = 12 + max(len(label) for label in labels) * _CHARACTER_PX
    right = 66
    with drawing(identifier):
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        axes = figure.add_axes(
            (
                left / width,
                bottom / height,
                (width - left - right) / width,
                row * len(bars) / height,
            )
        )
        _stack(axes, bars, LABELLED_PX[0] / (width - left - right), upright=False)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.set_yticks(np.arange(len(bars)), labels)
        axes.set_xticks((0, 0.5, 1), ("0 %", "50 %", "100 %"))
        for place, bar in enumerate(bars):
            axes.annotate(
                bar.size_said, (1, place), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=11.5, fontweight="bold",
            )  # fmt: skip
            if not bar.total:
                axes.text(
                    0, place, " met no recorded lock", va="center", color=paint("muted"),
                )  # fmt: skip
        _calm(axes)
        axes.tick_params(axis="y", labelcolor=paint("ink"))
        return themed_svg(figure, identifier, "Thread time by state", _in_words(bars), css)


def _short(label: str) -> str:
    """A label of at most 26 characters; a longer one keeps its two ends."""
    label = visible(label)
    return (
        label if len(label) <= LONGEST_LABEL else f"{label[:15]}…{label[-(LONGEST_LABEL - 16) :]}"
    )


def _stack(axes: Axes, bars: Sequence[Bar], labelled_share: float, *, upright: bool) -> None:
    places = [float(place) for place in range(len(bars))]
    totals = np.array([bar.total or 1.0 for bar in bars])
    start = np.zeros(len(bars))
    for state in used_states(bars):
        shares = np.array([bar.seconds.get(state.key) or 0.0 for bar in bars]) / totals
        colours = {"color": paint(state.key), "edgecolor": paint("page")}
        if upright:
            axes.bar(places, shares, BAR, bottom=start, linewidth=1, **colours)  # type: ignore[arg-type]
        else:
            axes.barh(places, shares, BAR, left=start, linewidth=1, **colours)  # type: ignore[arg-type]
        for place, share, begin in zip(places, shares, start, strict=True):
            if share >= labelled_share:
                middle = begin + share / 2
                axes.text(
                    place if upright else middle, middle if upright else place,
                    rounded_percent(share), ha="center", va="center_baseline", fontsize=11.5,
                    color=paint(f"on-{state.key}"),
                )  # fmt: skip
        start = start + shares


def rounded_percent(share: float) -> str:
    """Whole per cent; what is not quite everything is never called 100 %."""
    return ">99 %" if 0.995 <= share < 1 - 1e-9 else f"{share * 100:.0f} %"


def _calm(axes: Axes) -> None:
    axes.tick_params(length=0, labelsize=12)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _in_words(bars: Sequence[Bar]) -> str:
    sentences = []
    for bar in bars:
        parts = ", ".join(
            f"{state.title} {100 * (bar.seconds.get(state.key) or 0.0) / (bar.total or 1.0):.0f} %"
            for state in used_states(bars)
        )
        sentences.append(f"{visible(bar.label, 60)}: {bar.size_said} in all, {parts}.")
    return " ".join(sentences)
