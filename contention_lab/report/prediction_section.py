"""The section of a page that shows a prediction beside what was then measured.

It words and arranges what the result's "prediction" has; errors are computed by the sweep. Times of
other machines are marked as predictions, for nobody has measured them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from contention_lab.report.document import listed
from contention_lab.report.plot_pair import PlotPair, plot_pair
from contention_lab.report.prediction_plots import prediction_plots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that was to be reached: what, what was reached, whether it is enough."""

    what: str
    found: str
    reached: bool


@dataclass(frozen=True, slots=True)
class MachineRow:
    """How many times as fast a variant is predicted to be, by cores: with a GIL, and without."""

    variant: str
    gil: tuple[float | None, ...]
    free: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class PredictionSection:
    """What the template shows.

    Attributes
    ----------
    source, recorded
        What the prediction is made from, and how that was recorded.
    costs
        Whose costs of locks it is made with.
    remainder
        What the recorded runs took beside what is simulated; "" if that is not known.
    plots
        Predicted and measured, a panel for each variant.
    goals
        What was to be reached.
    points, variants
        As in the proof.
    cores, machines
        Other machines.
    thread
        Who of those in the thread was right about what, a sentence each.
    """

    source: str
    recorded: str
    costs: str
    remainder: str
    plots: PlotPair
    goals: tuple[Goal, ...]
    points: Sequence[Mapping[str, Any]]
    variants: Sequence[Mapping[str, Any]]
    cores: tuple[int, ...]
    machines: tuple[MachineRow, ...]
    thread: tuple[str, ...]


def prediction_section(result: Mapping[str, Any]) -> PredictionSection | None:
    """Return the section; None where nothing was predicted, or nothing of it measured."""
    found = result.get("prediction")
    if not found or not found["proof"]["points"]:
        return None
    proof = found["proof"]
    return PredictionSection(
        found["source"],
        _recorded(found),
        _costs(found["calibration"]),
        _remainder(found.get("remainder")),
        plot_pair(partial(_draw, proof["points"]), "prediction"),
        tuple(_goals(proof)),
        proof["points"],
        proof["variants"],
        tuple(sorted({entry["cores"] for entry in found["machines"]})),
        _machines(found["machines"], result["variants"]),
        tuple(who_was_right(result)),
    )


def _draw(
    points: Sequence[Mapping[str, Any]], identifier: str, width: int, _height: int, css: str
) -> Markup | None:
    return prediction_plots(points, identifier, width, css)


def _recorded(found: Mapping[str, Any]) -> str:
    counts = sorted({one["threads"] for one in found["recorded"]})
    each = len(found["recorded"]) // max(1, len(counts))
    return f"{each} recordings each with {listed([str(count) for count in counts])} threads"


def _costs(calibration: Mapping[str, Any]) -> str:
    if not calibration["measured_at"]:
        text = "Costs of locks are a conservative default; nobody measured this host."
    else:
        when = "just before" if calibration["taken"] else f"on {calibration['measured_at'][:10]}"
        text = f"Costs of locks were measured on this host {when}."
    trip = calibration["round_trip_us"]
    text += f" Handing an empty job to another thread and getting its answer took {trip:.0f} µs."
    if calibration["warnings"]:
        text += f" While the costs were measured: {'; '.join(calibration['warnings'])}."
    return text


def _remainder(found: Mapping[str, float] | None) -> str:
    if found is None:
        return ""
    alone, together = (math.exp(found[key]) for key in ("alone", "together"))
    at = f"{found['cores_alone']:.1f} and {found['cores_together']:.1f} cores"
    return (
        f"The recorded runs took {alone:.2f} times as long as simulated with one thread and "
        f"{together:.2f} times with more, with {at} at work: other programs, memory and a "
        "hypervisor are not simulated. What is predicted for this machine is as much longer, by "
        "the cores at work."
    )


def _goals(proof: Mapping[str, Any]) -> list[Goal]:
    wanted, goals = proof["goals"], []
    for order in proof["orders"]:
        told, wrong = order["told_apart"], order["wrong"]
        text = f"{told - len(wrong)} of the {told} pairs that the measured runs tell apart"
        if wrong:
            pairs = [f"{one} and {other}" for one, other in wrong]
            text += f"; the wrong way round: {listed(pairs)}"
        goals.append(Goal(f"order at {order['threads']} threads", text, not wrong))
    error = proof["median_error"]
    if error is not None:
        most = wanted["median_error"]
        goals.append(
            Goal(
                f"median error of points that do not collapse, at most {most:.0%}",
                f"{error:.1%}",
                error <= most,
            )
        )
    factor = proof["collapsing_factor"]
    if factor is not None:
        most = wanted["collapsing_factor"]
        goals.append(
            Goal(
                f"points that spin with more threads than cores, within a factor of {most:g}",
                f"{factor:.2f} at worst",
                factor <= most,
            )
        )
    coverage = proof["coverage"]
    covered = sum(point["covered"] for point in proof["points"])
    goals.append(
        Goal(
            "80 % intervals that hold the measured median",
            f"{covered} of {len(proof['points'])} ({coverage:.0%})",
            coverage >= wanted["coverage"],
        )
    )
    return goals


def _machines(
    entries: Sequence[Mapping[str, Any]], variants: Sequence[str]
) -> tuple[MachineRow, ...]:
    times = {(one["variant"], one["gil"], one["cores"]): one["times"] for one in entries}
    cores = sorted({one["cores"] for one in entries})
    return tuple(
        MachineRow(
            variant,
            tuple(times.get((variant, True, count)) for count in cores),
            tuple(times.get((variant, False, count)) for count in cores),
        )
        for variant in variants
        if any((variant, True, count) in times for count in cores)
    )


SHIPPED: Final = "global-spinlock"
CLAIMS: Final = (
    ("narrow-lock", "The reporter, who narrowed the lock"),
    ("channel", "The channel behind the feature flag"),
    ("async-backend", "The maintainer, who would queue the computation"),
    ("graph-mutex", "Upstream's later way, a lock for each graph"),
)
NEAR: Final = 1.15
"""A variant that takes at most so many times as long as the best is as good as it."""
BETTER: Final = 1.1
"""A variant is faster than another if it is so many times as fast."""


def who_was_right(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each remedy of the thread that was measured, from medians alone."""
    walls = {(p["variant"], p["threads"]): p["wall_s"] for p in result["points"]}
    times = {point: wall["median"] for point, wall in walls.items()}
    cpu = {(p["variant"], p["threads"]): p.get("cpu_s") for p in result["points"]}
    counts = sorted({threads for variant, threads in times if variant == SHIPPED})
    if len(counts) < 2 or counts[0] != 1:
        return []
    at = 8 if 8 in counts else counts[-1]
    shared = [variant for variant in result["variants"] if (variant, at) in times]
    best = min((walls[variant, at] for variant in shared), key=lambda wall: float(wall["median"]))
    alone, shipped = times[SHIPPED, 1], times[SHIPPED, at]
    lines = [
        f"As shipped, the batch takes {shipped / alone:.2f} times as long with {at} threads as "
        "with one."
    ]
    serial = walls.get(("global-mutex", at))
    for variant, who in CLAIMS:
        if (variant, at) not in times:
            continue
        took = times[variant, at]
        text = f"{who} (`{variant}`): {shipped / took:.1f} times as fast as shipped at {at} threads"
        text += f", {alone / took:.2f} times as fast as one thread as shipped. "
        text += _judged(walls[variant, at], best, serial)
        more = _cpu_ratio(cpu.get((variant, at)), cpu.get(("thread-local", at)))
        if variant == "async-backend" and more is not None and more > BETTER:
            text += f" Handing kernels over costs: {more:.2f} times the CPU time of `thread-local`."
        lines.append(text)
    return lines


def _judged(
    wall: Mapping[str, Any], best: Mapping[str, Any], serial: Mapping[str, Any] | None
) -> str:
    """Judge a remedy by its runs, those of the best, and those of a mutex in the same place."""
    took, least = wall["median"], best["median"]
    if took <= NEAR * least:
        return f"Right: nothing measured is better by more than {NEAR - 1:.0%}."
    if wall["low"] <= best["high"]:
        return "Not decided: its runs and those of the best overlap."
    if serial is not None and took * BETTER > serial["median"]:
        times = serial["median"] / took
        return (
            "It only ends the spinning: it is no better than a mutex in the place of the spinlock "
            f"({times:.2f} times as fast)."
        )
    return f"Right in part: the best takes {least / took:.0%} of its time."


def _cpu_ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None
