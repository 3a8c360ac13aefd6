"""The picture of a command's sweep: measured points, ideal, fitted law, and forecast with interval.

It draws what the result says, in the command's own unit, and computes nothing. What lies beyond the
largest measured count is drawn on other ground and called a forecast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from contention_lab.report.line_labels import LineLabel, label_lines
from contention_lab.report.quantity import seconds, three_digits
from contention_lab.report.themed_svg import POINTS_PER_INCH, drawing, paint, themed_svg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup
    from matplotlib.axes import Axes

LOG_FROM_RATIO: Final = 6.0
"""Values that differ more than this are drawn on a logarithmic axis (and the axis says so)."""


def value_said(result: Mapping[str, Any], value: float | None) -> str:
    """A value in the command's unit: `1.23 s`, or a rate."""
    if value is None:
        return "–"
    return seconds(value) if result["fit"]["kind"] == "time" else f"{three_digits(value)}/s"


def command_plot(
    result: Mapping[str, Any], identifier: str, width: int, height: int, css: str
) -> Markup:
    """The plot as inline SVG of `width` by `height` pixels."""
    counts = np.array([point["threads"] for point in result["points"]], float)
    medians = np.array([point["median"] for point in result["points"]], float)
    with drawing(identifier):
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        axes = figure.add_axes((0, 0, 1, 1))
        labels = _lines(axes, result, float(counts[-1]))
        _measured(axes, result, counts, medians)
        labels.append(LineLabel("measured", float(medians[-1]), "measured", bold=True))
        logarithmic = _scale(axes, result)
        kind = "time" if result["fit"]["kind"] == "time" else "rate"
        axis = f"{kind}{' (logarithmic)' if logarithmic else ''}"
        _frame(axes, result, (width, height), max(label.width for label in labels), axis)
        label_lines(axes, labels)
        return themed_svg(
            figure, identifier, f"{kind.capitalize()} against threads", _in_words(result), css
        )


def _lines(axes: Axes, result: Mapping[str, Any], last: float) -> list[LineLabel]:
    """Ideal, law and forecast; returns their labels."""
    labels = []
    ideal = np.array(result["curves"]["ideal"])
    axes.plot(*ideal.T, color=paint("ideal"), linewidth=1.2, dashes=(4, 3))
    labels.append(LineLabel("ideal", float(ideal[-1, 1]), "muted"))
    if "law" in result["curves"]:
        law = np.array(result["curves"]["law"])
        axes.plot(*law.T, color=paint("fit"), linewidth=1.6, dashes=(1.5, 2))
        labels.append(LineLabel(f"{result['fit']['chosen']} law", float(law[-1, 1]), "fit"))
    found = result["fit"]["predictions"]
    if found:
        axes.axvspan(last * 1.06, found[-1]["threads"] * 1.13, color=paint("surface"), zorder=0)
        at = [row["threads"] for row in found]
        axes.vlines(
            at, [row["low"] for row in found], [row["high"] for row in found],
            color=paint("bound"), linewidth=5, alpha=0.3,
        )  # fmt: skip
        axes.plot(
            at, [row["value"] for row in found], color=paint("bound"), linestyle="none",
            marker="D", markersize=5, markerfacecolor=paint("page"), markeredgewidth=1.4,
        )  # fmt: skip
        labels.append(LineLabel("forecast\n80 % interval", float(found[-1]["value"]), "bound"))
    return labels


def _measured(
    axes: Axes, result: Mapping[str, Any], counts: np.ndarray, medians: np.ndarray
) -> None:
    ink = paint("measured")
    low = [min(point["values"]) for point in result["points"]]
    high = [max(point["values"]) for point in result["points"]]
    axes.vlines(counts, low, high, color=ink, linewidth=5, alpha=0.3)
    axes.plot(
        counts, medians, color=ink, linewidth=2.2, marker="o", markersize=6.5,
        markeredgecolor=paint("page"), markeredgewidth=1, zorder=4,
    )  # fmt: skip
    for point in result["points"]:
        runs = point["values"]
        axes.plot(
            [point["threads"]] * len(runs), runs, linestyle="none", marker="_", markersize=9,
            color=ink, markeredgewidth=0.8, alpha=0.65, zorder=3,
        )  # fmt: skip
    said: set[str] = set()
    for index in dict.fromkeys((0, len(counts) - 1, int(medians.argmin()), int(medians.argmax()))):
        text = value_said(result, float(medians[index]))
        if text in said:
            continue
        said.add(text)
        axes.annotate(
            text, (counts[index], medians[index]),
            xytext=(0, 9), textcoords="offset points", ha="center" if index else "left",
            fontsize=11.5, fontweight="bold", zorder=6,
        )  # fmt: skip


def _scale(axes: Axes, result: Mapping[str, Any]) -> bool:
    """Choose the scale of the value axis; True where it is logarithmic."""
    axes.set_xscale("log", base=2)
    values = [value for point in result["points"] for value in point["values"]]
    shown = values + [
        row[end] for row in result["fit"]["predictions"] for end in ("value", "low", "high")
    ]
    low, high = min(values), max(values)
    top = min(max(shown), 10 * high)
    logarithmic = bool(max(high, top) / low > LOG_FROM_RATIO)
    if logarithmic:
        axes.set_yscale("log")
        axes.set_ylim(max(min(shown), low / 10) / 1.5, top * 1.6)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, top * 1.15)
    unit = " s" if result["fit"]["kind"] == "time" else "/s"
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{_tick(value)}{unit}"))
    return logarithmic


def _tick(value: float) -> str:
    text = three_digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _frame(
    axes: Axes, result: Mapping[str, Any], size: tuple[int, int], label_px: float, axis: str
) -> None:
    """Place the axes in pixels, and leave only what helps reading."""
    width, height = size
    left, right, top, bottom = 56, label_px + 14, 26, 42
    axes.set_position(
        (left / width, bottom / height, (width - left - right) / width,
         (height - top - bottom) / height)
    )  # fmt: skip
    measured = [point["threads"] for point in result["points"]]
    ticks = [*measured, *(row["threads"] for row in result["fit"]["predictions"][1::2])]
    axes.set_xlim(measured[0] / 1.13, ticks[-1] * 1.13)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("threads", fontsize=12, labelpad=4)
    axes.text(
        -(left - 4) / (width - left - right), 1 + 9 / (height - top - bottom), axis,
        transform=axes.transAxes, color=paint("muted"), fontsize=12,
    )  # fmt: skip
    axes.grid(visible=True, axis="y")
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=12)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def _in_words(result: Mapping[str, Any]) -> str:
    measured = ", ".join(
        f"{value_said(result, point['median'])} at {point['threads']}" for point in result["points"]
    )
    forecast = ", ".join(
        f"{value_said(result, row['value'])} at {row['threads']:g}"
        for row in result["fit"]["predictions"]
    )
    return f"Measured: median {measured} threads. Forecast: {forecast} threads."
