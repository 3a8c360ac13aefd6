"""Predicted and then measured times: a small plot for each variant, all on the same axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from contention_lab.report.quantity import seconds, three_digits
from contention_lab.report.themed_svg import POINTS_PER_INCH, drawing, paint, themed_svg
from contention_lab.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup
    from matplotlib.axes import Axes

NARROW_PX: Final = 500
COLUMNS: Final = 4
COLUMNS_NARROW: Final = 2
ROW_PX: Final = 170
_TITLE: Final = 20


def prediction_plots(
    points: Sequence[Mapping[str, Any]], identifier: str, width: int, css: str
) -> Markup | None:
    """Return the plots as one inline SVG, or None if nothing was both predicted and measured.

    Parameters
    ----------
    points
        Those of a proof: predicted time and interval, measured median and range.
    identifier, width, css
        As for other plots of a page.
    """
    variants = list(dict.fromkeys(point["variant"] for point in points))
    if not variants:
        return None
    columns = min(len(variants), COLUMNS_NARROW if width < NARROW_PX else COLUMNS)
    rows = math.ceil(len(variants) / columns)
    height = ROW_PX * rows
    with drawing(identifier):
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        panels = [axes for row in grid for axes in row]
        for axes, variant in zip(panels, variants, strict=False):
            _panel(axes, variant, [point for point in points if point["variant"] == variant])
        for axes in panels[len(variants) :]:
            axes.set_visible(False)
        _frame(panels, points)
        for number, axes in enumerate(panels[: len(variants)]):
            below = number + columns >= len(variants)
            axes.tick_params(labelbottom=below)
            if below:
                axes.set_xlabel("threads", fontsize=10, labelpad=2)
        figure.subplots_adjust(
            left=44 / width, right=1 - 6 / width, top=1 - 24 / height, bottom=36 / height,
            wspace=0.08, hspace=0.42,
        )  # fmt: skip
        title = "Predicted and measured batch time against threads"
        return themed_svg(figure, identifier, title, _in_words(points, variants), css)


def _panel(axes: Axes, variant: str, points: Sequence[Mapping[str, Any]]) -> None:
    points = sorted(points, key=lambda point: int(point["threads"]))
    threads = [point["threads"] for point in points]
    low, high = ([point[key] for point in points] for key in ("low_s", "high_s"))
    axes.fill_between(threads, low, high, color=paint("fit"), alpha=0.22, linewidth=0)
    axes.plot(
        threads, [point["time_s"] for point in points],
        color=paint("fit"), linewidth=1.6, dashes=(3, 2),
    )  # fmt: skip
    axes.vlines(
        threads,
        [point["measured_low_s"] for point in points],
        [point["measured_high_s"] for point in points],
        color=paint("measured"),
        linewidth=1.4,
    )
    axes.plot(
        threads, [point["measured_s"] for point in points],
        color=paint("measured"), linestyle="none", marker="o", markersize=4.5, zorder=4,
    )  # fmt: skip
    axes.set_title(visible(variant, _TITLE), fontsize=11, pad=4, color=paint("ink"))


def _frame(panels: Sequence[Axes], points: Sequence[Mapping[str, Any]]) -> None:
    threads = sorted({point["threads"] for point in points})
    times = [point[key] for point in points for key in ("low_s", "high_s", "measured_s")]
    first = panels[0]
    first.set_xscale("log", base=2)
    first.set_yscale("log")
    first.set_xlim(threads[0] / 1.3, threads[-1] * 1.3)
    first.set_ylim(min(times) / 1.25, max(times) * 1.25)
    first.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    first.yaxis.set_minor_locator(NullLocator())
    for axes in panels:
        axes.xaxis.set_major_locator(FixedLocator(threads))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{_tick(value)} s"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True, axis="y")
        axes.set_axisbelow(True)
        axes.tick_params(length=0, labelsize=10)
        for side in ("left", "right", "top"):
            axes.spines[side].set_visible(False)


def _tick(value: float) -> str:
    text = three_digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _in_words(points: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> str:
    sentences = []
    for variant in variants:
        told = ", ".join(
            f"{seconds(point['time_s'])} and {seconds(point['measured_s'])} at {point['threads']}"
            for point in points
            if point["variant"] == variant
        )
        sentences.append(f"{visible(variant, 60)}: predicted and measured {told} threads.")
    return " ".join(sentences)
