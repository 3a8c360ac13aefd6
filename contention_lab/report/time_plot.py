"""Batch time against threads: the first picture of a sweep.

One variant: measured medians with their range and single runs, the ideal, the fitted law, and the
best that is possible while one lock is held for so long. Several variants: one line each, and the
ideal. It draws what the result says and computes only the ideal and the bound's line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from contention_lab.report.line_labels import LineLabel, label_lines
from contention_lab.report.palette import line_role
from contention_lab.report.quantity import seconds, three_digits
from contention_lab.report.themed_svg import POINTS_PER_INCH, drawing, paint, themed_svg
from contention_lab.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup
    from matplotlib.axes import Axes

LOG_FROM_RATIO: Final = 6.0
"""Times that differ more than this are drawn on a logarithmic axis (and the axis says so)."""
POOR_FIT: Final = 0.15
"""A mean error above this is written at the fitted line itself."""
RUNS_BESIDE_PX: Final = 7
"""Single runs are drawn this far to the right of their median, to be seen beside it."""
_MARKERS: Final = "osD^vP*X"


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured times of one variant, in order of threads."""

    variant: str
    threads: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray
    runs: tuple[tuple[float, ...], ...]


def curves(result: Mapping[str, Any]) -> tuple[Curve, ...]:
    """The measured curves of a sweep result, in the order of its variants."""
    found = []
    for variant in result["variants"]:
        points = sorted(
            (p for p in result["points"] if p["variant"] == variant and p.get("wall_s")),
            key=lambda p: p["threads"],
        )
        if points:
            walls = [p["wall_s"] for p in points]
            found.append(
                Curve(
                    variant,
                    np.array([p["threads"] for p in points], float),
                    np.array([w["median"] for w in walls], float),
                    np.array([w["low"] for w in walls], float),
                    np.array([w["high"] for w in walls], float),
                    tuple(tuple(w["runs"]) for w in walls),
                )
            )
    return tuple(found)


def ideal_seconds(first: Curve, threads: np.ndarray, cores: int | None) -> np.ndarray:
    """Time without any loss: the work of the smallest thread count spread over threads and cores.

    Parameters
    ----------
    first : Curve
        Its point with the fewest threads is the baseline.
    threads : ndarray
        Thread counts asked for.
    cores : int or None
        More threads than cores bring nothing more; None: unknown, no limit.
    """
    base = min(first.threads[0], cores) if cores else first.threads[0]
    lanes = np.minimum(threads, cores) if cores else threads
    return np.asarray(first.median[0] * base / lanes)


def time_plot(
    result: Mapping[str, Any], identifier: str, width: int, height: int, css: str
) -> Markup | None:
    """The plot as inline SVG of `width` by `height` pixels, or None if nothing was measured."""
    measured = curves(result)
    if not measured:
        return None
    cores = result["machine"].get("cores")
    with drawing(identifier):
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        axes = figure.add_axes((0, 0, 1, 1))
        labels = (
            _one_variant(axes, result, measured[0], cores)
            if len(measured) == 1
            else _several_variants(axes, measured, cores)
        )
        logarithmic = _scale(axes, measured)
        axis = f"batch time{' (logarithmic)' if logarithmic else ''}"
        _frame(axes, measured, width, height, max(label.width for label in labels), axis)
        label_lines(axes, labels)
        return themed_svg(
            figure, identifier, "Batch time against threads", _in_words(measured), css
        )


def _one_variant(
    axes: Axes, result: Mapping[str, Any], curve: Curve, cores: int | None
) -> list[LineLabel]:
    fine = np.geomspace(curve.threads[0], curve.threads[-1], 97)
    ideal = ideal_seconds(curve, fine, cores)
    axes.plot(fine, ideal, color=paint("ideal"), linewidth=1.2, dashes=(4, 3))
    named_cores = f"on {cores} core{'s' if cores != 1 else ''}" if cores else ""
    labels = [LineLabel(f"ideal\n{named_cores}".strip(), float(ideal[-1]), "muted")]
    for bound in result.get("bounds", ()):
        if bound["variant"] == curve.variant and bound.get("serial_hold_s"):
            best = np.maximum(ideal, bound["serial_hold_s"])
            axes.plot(fine, best, color=paint("bound"), linewidth=1.6)
            labels.append(LineLabel("best possible\nwith this lock", float(best[-1]), "bound"))
    for fit in result.get("fits", ()):
        if fit["variant"] == curve.variant and fit["model"] == "usl":
            law = fitted_seconds(fit, fine)
            axes.plot(fine, law, color=paint("fit"), linewidth=1.6, dashes=(1.5, 2))
            error = fit.get("mean_error") or 0.0
            said = f"USL fit\nmisses by {error * 100:.0f} %" if error > POOR_FIT else "USL fit"
            labels.append(LineLabel(said, float(law[-1]), "fit"))
    _measured_line(axes, curve, "measured", "o", 2.2)
    _value_texts(axes, curve)
    labels.append(LineLabel("measured", float(curve.median[-1]), "measured", bold=True))
    return labels


def _several_variants(axes: Axes, measured: Sequence[Curve], cores: int | None) -> list[LineLabel]:
    first = min(measured, key=lambda curve: (curve.threads[0], curve.median[0]))
    fine = np.geomspace(first.threads[0], max(c.threads[-1] for c in measured), 97)
    ideal = ideal_seconds(first, fine, cores)
    axes.plot(fine, ideal, color=paint("ideal"), linewidth=1.2, dashes=(4, 3))
    labels = [LineLabel("ideal", float(ideal[-1]), "muted")]
    for index, curve in enumerate(measured):
        role = line_role(index)
        _measured_line(axes, curve, role, _MARKERS[index % len(_MARKERS)], 1.8)
        labels.append(
            LineLabel(visible(curve.variant, 24), float(curve.median[-1]), role, bold=True)
        )
    return labels


def fitted_seconds(fit: Mapping[str, Any], threads: np.ndarray) -> np.ndarray:
    """T(N) = P/N + S + h(N-1), the time form of the Universal Scalability Law."""
    return np.asarray(
        fit["parallel_s"] / threads + fit["serial_s"] + fit["per_thread_s"] * (threads - 1)
    )


def _measured_line(axes: Axes, curve: Curve, role: str, marker: str, width: float) -> None:
    colour = paint(role)
    axes.vlines(curve.threads, curve.low, curve.high, color=colour, linewidth=5, alpha=0.3)
    axes.plot(
        curve.threads, curve.median, color=colour, linewidth=width, marker=marker,
        markersize=6.5, markeredgecolor=paint("page"), markeredgewidth=1, zorder=4,
    )  # fmt: skip
    beside = axes.transData + ScaledTranslation(
        RUNS_BESIDE_PX / POINTS_PER_INCH, 0, axes.figure.dpi_scale_trans
    )
    for threads, runs in zip(curve.threads, curve.runs, strict=True):
        if len(runs) > 1:
            axes.plot(
                [threads] * len(runs), runs, linestyle="none", marker="o", markersize=2.6,
                color=colour, markeredgewidth=0, alpha=0.65, transform=beside, zorder=3,
            )  # fmt: skip


def _value_texts(axes: Axes, curve: Curve) -> None:
    """Write the time at the first, the best, the worst and the last point."""
    last = len(curve.threads) - 1
    told = {0, last, int(curve.median.argmin()), int(curve.median.argmax())}
    for index in sorted(told):
        below = index != 0 and index == int(curve.median.argmin())
        axes.annotate(
            seconds(float(curve.median[index])), (curve.threads[index], curve.median[index]),
            xytext=({0: -5, last: 5}.get(index, 0), -8 if below else 8), textcoords="offset points",
            ha={last: "right", 0: "left"}.get(index, "center"),
            va="top" if below else "bottom", fontsize=11.5, fontweight="bold", zorder=6,
        )  # fmt: skip


def _scale(axes: Axes, measured: Sequence[Curve]) -> bool:
    """Choose the scale of the time axis; True where it is logarithmic."""
    axes.set_xscale("log", base=2)
    low = min(float(curve.low.min()) for curve in measured)
    high = max(float(curve.high.max()) for curve in measured)
    logarithmic = low > 0 and high / low > LOG_FROM_RATIO
    if logarithmic:
        axes.set_yscale("log")
        bottom = min(low, *(float(line.get_ydata().min()) for line in axes.get_lines()))  # type: ignore[union-attr]
        axes.set_ylim(max(bottom, low / 10) / 1.5, high * 1.6)
        decades = math.log10(high / low)
        steps = (1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 4 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=steps))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, high * 1.15)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{_tick(value)} s"))
    return logarithmic


def _tick(value: float) -> str:
    text = three_digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _frame(
    axes: Axes, measured: Sequence[Curve], width: int, height: int, label_px: float, axis: str
) -> None:
    """Place the axes in pixels, and leave only what helps reading."""
    left, right, top, bottom = 48, label_px + 14, 26, 42
    axes.set_position(
        (left / width, bottom / height, (width - left - right) / width,
         (height - top - bottom) / height)
    )  # fmt: skip
    threads = sorted({int(n) for curve in measured for n in curve.threads})
    axes.set_xlim(threads[0] / 1.13, threads[-1] * 1.13)
    axes.xaxis.set_major_locator(FixedLocator(threads))
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


def _in_words(measured: Sequence[Curve]) -> str:
    sentences = []
    for curve in measured:
        values = ", ".join(
            f"{seconds(float(time))} at {int(n)}"
            for n, time in zip(curve.threads, curve.median, strict=True)
        )
        sentences.append(f"{visible(curve.variant, 60)}: median {values} threads.")
    return " ".join(sentences)
