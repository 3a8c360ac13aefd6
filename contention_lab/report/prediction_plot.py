"""A picture of a prediction: batch time against threads, one curve for each remedy.

Measured points on top, intervals and the band that theory allows behind. A file by itself, SVG or
PNG by its name; the page of a trace does not use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from contention_lab.diagnosis.wording import seconds
from contention_lab.report.palette import LIGHT, line_role
from contention_lab.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

CURVES: Final = 6
"""Remedies drawn, those that bring most; more cannot be told apart."""
SIZE_IN: Final = (9.0, 5.0)
LOG_FROM_RATIO: Final = 6.0
_LABEL: Final = 28


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Draw a prediction into a file.

    Parameters
    ----------
    found
        As `prediction_json` returns it.
    path
        The file; its suffix says which format.
    """
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "prediction"}):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        axes = figure.add_subplot()
        as_recorded = found["as_recorded"]
        _band(axes, as_recorded)
        _curve(axes, as_recorded, "ink", "as it is", width=2.2)
        for number, one in enumerate(found["remedies"][:CURVES]):
            _curve(axes, one["points"], line_role(number + 1), _cut(one["fix"]), width=1.5)
        recorded = found["recorded"]
        if recorded["cores"] == found["cores"]:
            axes.plot(
                [recorded["threads"]], [recorded["time_s"]], "o", color=LIGHT["measured"],
                markersize=9, markerfacecolor=LIGHT["mark"], markeredgewidth=1.6,
                label="measured", zorder=6,
            )  # fmt: skip
        _frame(axes, found)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=144, metadata=metadata)


def _band(axes: Axes, points: Sequence[Mapping[str, Any]]) -> None:
    axes.fill_between(
        [point["threads"] for point in points],
        [point["bound_s"] for point in points],
        [point["mean_value_analysis_s"] for point in points],
        color=LIGHT["bound"], alpha=0.15, linewidth=0, label="bound to MVA, as it is",
    )  # fmt: skip


def _curve(
    axes: Axes, points: Sequence[Mapping[str, Any]], role: str, name: str, width: float
) -> None:
    threads = [point["threads"] for point in points]
    low, high = ([point[key] for point in points] for key in ("low_s", "high_s"))
    axes.vlines(threads, low, high, color=LIGHT[role], alpha=0.3, linewidth=4)
    axes.plot(
        threads, [point["time_s"] for point in points],
        color=LIGHT[role], linewidth=width, marker=".", label=name,
    )  # fmt: skip


def _frame(axes: Axes, found: Mapping[str, Any]) -> None:
    every = [*found["as_recorded"], *(p for one in found["remedies"] for p in one["points"])]
    times = [point["time_s"] for point in every]
    threads = sorted({point["threads"] for point in every} | {found["recorded"]["threads"]})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(threads))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if max(times) > LOG_FROM_RATIO * min(times):
        axes.set_yscale("log")
        axes.set_ylabel("batch time, logarithmic")
    else:
        axes.set_ylim(0, 1.12 * max(times))
        axes.set_ylabel("batch time")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value)))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
    cores = found["cores"]
    free = "" if found["gil"] else ", without the GIL"
    lock = visible(found["lock"]["name"], _LABEL) if found["lock"] else "no lock"
    axes.set_xlabel("threads")
    axes.set_title(
        f"Predicted, not measured: {lock}, {cores} core{'s' * (cores != 1)}{free}",
        loc="left", fontsize=11,
    )  # fmt: skip
    axes.grid(visible=True, axis="y", color=LIGHT["grid"])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.figure.legend(loc="outside right upper", frameon=False, fontsize=9)


def _cut(text: str) -> str:
    return visible(text, _LABEL)
