"""A prediction against what was then measured: errors, order, coverage of the intervals.

Where waiters that spin outnumber the cores, times are within a factor and not within percents;
those points are counted apart. Two variants whose runs overlap have no order to be right about.
"""

from __future__ import annotations

import math
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ORDER_AT: Final = (8, 32)
"""Thread counts at which the order of the variants is looked at."""
GOALS: Final[Mapping[str, float]] = {
    "median_error": 0.15,
    "collapsing_factor": 2.0,
    "coverage": 0.8,
}
SAME: Final = 0.05
"""Medians that differ by less than this have no order, whatever the runs' ranges are."""
SAME_OF_ONE: Final = 0.25
"""The same of single runs, of which nobody knows a range."""


def proof(predicted: Mapping[str, Any], measured: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how far a prediction was off.

    Parameters
    ----------
    predicted
        As `prediction.json` has it.
    measured
        The points of a result.

    Returns
    -------
    dict
        "points": what was predicted and measured for each; "variants": the median error of each,
        collapsing points left out; "median_error", "collapsing_factor" (the worst), "coverage";
        "orders": for each of `ORDER_AT` the variants as predicted and as measured, and how many
        pairs the measurements can tell apart and the prediction has the right way round.
    """
    walls = {(point["variant"], point["threads"]): point["wall_s"] for point in measured}
    points = [
        _compared(point, walls[point["variant"], point["threads"]])
        for point in predicted["points"]
        if (point["variant"], point["threads"]) in walls
    ]
    steady = [point for point in points if not point["collapses"]]
    collapsing = [point for point in points if point["collapses"]]
    variants = dict.fromkeys(point["variant"] for point in points)
    return {
        "points": points,
        "variants": [
            {
                "variant": variant,
                "median_error": _median([p for p in steady if p["variant"] == variant]),
                "covered": sum(p["covered"] for p in points if p["variant"] == variant),
                "points": sum(p["variant"] == variant for p in points),
            }
            for variant in variants
        ],
        "median_error": _median(steady),
        "collapsing_factor": max((point["factor"] for point in collapsing), default=None),
        "coverage": sum(p["covered"] for p in points) / len(points) if points else None,
        "orders": [
            _order([point for point in points if point["threads"] == threads], threads)
            for threads in ORDER_AT
            if any(point["threads"] == threads for point in points)
        ],
        "goals": dict(GOALS),
    }


def _compared(point: Mapping[str, Any], wall: Mapping[str, Any]) -> dict[str, Any]:
    time_s, took_s = point["time_s"], wall["median"]
    return {
        **point,
        "measured_s": took_s,
        "measured_low_s": wall["low"],
        "measured_high_s": wall["high"],
        "runs": len(wall["runs"]),
        "error": time_s / took_s - 1.0,
        "factor": math.exp(abs(math.log(time_s / took_s))),
        "covered": point["low_s"] <= took_s <= point["high_s"],
    }


def _median(points: Sequence[Mapping[str, Any]]) -> float | None:
    return median(abs(point["error"]) for point in points) if points else None


def _order(points: Sequence[Mapping[str, Any]], threads: int) -> dict[str, Any]:
    wrong = []
    told = 0
    for one, other in combinations(points, 2):
        if not _apart(one, other):
            continue
        told += 1
        slower = one["measured_s"] > other["measured_s"]
        if slower != (one["time_s"] > other["time_s"]):
            wrong.append([one["variant"], other["variant"]])
    return {
        "threads": threads,
        "predicted": [p["variant"] for p in sorted(points, key=lambda p: p["time_s"])],
        "measured": [p["variant"] for p in sorted(points, key=lambda p: p["measured_s"])],
        "pairs": len(points) * (len(points) - 1) // 2,
        "told_apart": told,
        "wrong": wrong,
    }


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether measurements say which of two variants is the slower."""
    fast, slow = sorted((one, other), key=lambda point: point["measured_s"])
    same = SAME if min(one["runs"], other["runs"]) > 1 else SAME_OF_ONE
    differ = slow["measured_s"] > fast["measured_s"] * (1.0 + same)
    return bool(differ and slow["measured_low_s"] > fast["measured_high_s"])
