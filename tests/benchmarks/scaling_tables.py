"""Fit the first half of published scaling tables, predict the rest, and say how far off it was.

Usage: python tests/benchmarks/scaling_tables.py FILE.json [--json] [--choices]

FILE.json is a list of {"id", "kind": "time" or "throughput", "work": "fixed" or "per-thread",
"points": [[threads, value], ...]}.

What is measured
----------------
The points of a table are put in order of their thread counts. The first half is the first
max(3, ceil(n/2)) of them: a law with three coefficients needs three. Only that half is given to the
model; the rest is predicted at its thread counts. Tables with fewer than four points have no rest.
Values are turned into the throughput of a fixed amount of work. The error of a table is the mean of
|predicted / measured - 1| over its held-out points; the median and the 90th percentile are over the
tables, so that a table of ninety points counts as much as one of four. Coverage is the share of
held-out points inside the 80 % interval, over all points and as the mean over the tables. Two
stricter readings are shown beside it: halves of exactly ceil(n/2) points, which leaves two points
of a table of four; and only tables of six points or more.

With `--choices` (minutes) the forecast's constants are put to the test instead, under the first
reading: the five that matter most are changed by a step, one at a time, up and down. Each table is
then left out in turn, the candidate is chosen that does best on all others (by the median error,
and a fourth of the 90th percentile, as the goals are), and that one is judged on the table left
out. It shows what each candidate reaches, how often the others' choice was the one in use, and the
figures over the tables that had no say. Figures that hang on one table would come apart here.

How the constants were chosen is in `contention_lab/scaling/experience.py`; what they reach on
tables that they were not chosen on is there too.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contention_lab.scaling.experience import EXPERIENCE
from contention_lab.scaling.forecast import forecast
from contention_lab.scaling.law import AMDAHL, HAND_OFF, USL, Law
from contention_lab.scaling.least_squares import fit_law
from contention_lab.scaling.measurements import Measurements, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contention_lab.scaling.experience import Experience
    from contention_lab.scaling.law import FloatArray

ENDS = 0.1, 0.9


class Prediction(NamedTuple):
    """Throughputs at the held-out thread counts; an interval where the model gives one."""

    value: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


class Outcome(NamedTuple):
    """What happened on one table."""

    table: str
    errors: FloatArray
    covered: FloatArray | None


def at_least_three(points: int) -> int:
    """Return the size of the first half: at least three points."""
    return max(3, math.ceil(points / 2))


def exact_half(points: int) -> int:
    """Return the size of the first half, however few points that is."""
    return math.ceil(points / 2)


READINGS: dict[str, tuple[Callable[[int], int], int]] = {
    "first half of at least three points": (at_least_three, 4),
    "exact first half": (exact_half, 4),
    "exact first half, tables of six points or more": (exact_half, 6),
}


def by_law(law: Law) -> Callable[[FloatArray, FloatArray, FloatArray], Prediction]:
    """Return a model that extrapolates one fitted law."""

    def predict(threads: FloatArray, seconds: FloatArray, at: FloatArray) -> Prediction:
        return Prediction(1.0 / fit_law(law, threads, seconds).seconds(at))

    return predict


def by_forecast(
    threads: FloatArray,
    seconds: FloatArray,
    at: FloatArray,
    experience: Experience = EXPERIENCE,
) -> Prediction:
    """Predict as `contention-lab fit --at` does."""
    found = forecast(threads, seconds, at, experience=experience)
    return Prediction(1.0 / found.median_s, 1.0 / found.high_s, 1.0 / found.low_s)


MODELS = {
    "Amdahl": by_law(AMDAHL),
    "USL": by_law(USL),
    "bound with linear hand-off": by_law(HAND_OFF),
    "forecast": by_forecast,
}


def read_tables(path: Path) -> list[tuple[str, Measurements]]:
    """Return the tables of a file, ordered by threads."""
    return [
        (
            str(table["id"]),
            measured(
                [point[0] for point in table["points"]],
                [point[1] for point in table["points"]],
                kind=table["kind"],
                work=table["work"],
            ),
        )
        for table in json.loads(path.read_text(encoding="utf-8"))
    ]


def outcomes(
    tables: Iterable[tuple[str, Measurements]],
    predict: Callable[[FloatArray, FloatArray, FloatArray], Prediction],
    half: Callable[[int], int],
    fewest: int,
) -> Iterator[Outcome]:
    """Hide the rest of every table, predict it, compare."""
    for name, table in tables:
        points = len(table.threads)
        known = half(points)
        if points < fewest or known >= points:
            continue
        threads, seconds = table.threads, table.seconds
        found = predict(threads[:known], seconds[:known], threads[known:])
        truth = 1.0 / seconds[known:]
        covered = (
            None
            if found.low is None or found.high is None
            else ((found.low <= truth) & (truth <= found.high)).astype(np.float64)
        )
        yield Outcome(name, np.abs(found.value / truth - 1.0), covered)


def summary(results: list[Outcome]) -> dict[str, Any]:
    """Return the figures of one model under one reading."""
    errors = np.array([np.mean(result.errors) for result in results])
    pooled = np.concatenate([result.errors for result in results])
    covered = [result.covered for result in results if result.covered is not None]
    return {
        "tables": len(results),
        "median_error": float(np.median(errors)),
        "p90_error": float(np.quantile(errors, ENDS[1])),
        "median_error_of_points": float(np.median(pooled)),
        "p90_error_of_points": float(np.quantile(pooled, ENDS[1])),
        "coverage": float(np.mean(np.concatenate(covered))) if covered else None,
        "coverage_by_table": float(np.mean([np.mean(one) for one in covered])) if covered else None,
    }


STEPS = {
    "growth": (0.6, 0.8),
    "growth_crowded": (1.0, 1.4),
    "far_growth": (0.4, 0.8),
    "scatter": (0.03, 0.08),
}
"""A step down and up for each constant; that of `broken.odds` is beside them."""
ODDS_STEPS = (0.2, 0.4)
IN_USE = "in use"


def candidates() -> dict[str, Experience]:
    """Return the constants in use, and the same with one of them a step away."""
    found = {IN_USE: EXPERIENCE}
    for name, steps in STEPS.items():
        for value in steps:
            found[f"{name} {value:g}"] = replace(EXPERIENCE, **{name: value})
    for odds in ODDS_STEPS:
        broken = replace(EXPERIENCE.broken, odds=odds)
        found[f"broken.odds {odds:g}"] = replace(EXPERIENCE, broken=broken)
    return found


def choices(by_candidate: dict[str, list[Outcome]]) -> dict[str, Any]:
    """Leave each table out in turn, and judge on it what does best on all others.

    Parameters
    ----------
    by_candidate
        What each candidate did on the same tables in the same order; `IN_USE` among them.

    Returns
    -------
    dict
        "candidates": the figures of each; "chosen": how often each was the others' choice;
        "left_out": the figures over the tables left out, each predicted with the others' choice.
    """
    names = list(by_candidate)
    errors = np.array([[np.mean(one.errors) for one in by_candidate[name]] for name in names])
    chosen = []
    for table in range(errors.shape[1]):
        others = np.delete(errors, table, axis=1)
        cost = np.median(others, axis=1) + np.quantile(others, ENDS[1], axis=1) / 4.0
        chosen.append(int(np.argmin(cost)))
    left_out = [by_candidate[names[place]][table] for table, place in enumerate(chosen)]
    return {
        "candidates": {name: summary(found) for name, found in by_candidate.items()},
        "chosen": dict(Counter(names[place] for place in chosen)),
        "left_out": summary(left_out),
    }


def judged_choices(tables: list[tuple[str, Measurements]]) -> dict[str, Any]:
    """Run every candidate on the tables, and leave one table out at a time."""
    half, fewest = next(iter(READINGS.values()))
    found = {}
    for name, experience in candidates().items():
        predict = partial(by_forecast, experience=experience)
        found[name] = list(outcomes(tables, predict, half, fewest))
        print(f"{name}: {in_words(summary(found[name]))}", file=sys.stderr, flush=True)
    return choices(found)


def in_words(figures: dict[str, Any]) -> str:
    """Return the figures in words."""
    return (
        f"median {figures['median_error']:.1%}, 90th {figures['p90_error']:.1%}, "
        f"covered {figures['coverage']:.1%}"
    )


def main(arguments: list[str]) -> int:
    """Print a table for each reading, or JSON."""
    parser = argparse.ArgumentParser(description="Predict the second half of scaling tables.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--choices", action="store_true", help="leave one table out at a time")
    options = parser.parse_args(arguments)
    tables = read_tables(options.file)
    if options.choices:
        judged = judged_choices(tables)
        if options.json:
            print(json.dumps(judged, indent=2))
            return 0
        for name, count in judged["chosen"].items():
            print(f"chosen by the others for {count} tables: {name}")
        print(f"on the tables left out: {in_words(judged['left_out'])}")
        return 0
    found = {
        reading: {
            model: summary(list(outcomes(tables, predict, half, fewest)))
            for model, predict in MODELS.items()
        }
        for reading, (half, fewest) in READINGS.items()
    }
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for reading, models in found.items():
        print(f"{reading} ({next(iter(models.values()))['tables']} tables)")
        print(f"  {'model':<28} {'median':>7} {'90th':>7} {'covered':>8} {'(by table)':>10}")
        for model, figures in models.items():
            shown = [
                "–" if figures[key] is None else f"{100.0 * figures[key]:.1f} %"
                for key in ("median_error", "p90_error", "coverage", "coverage_by_table")
            ]
            print(f"  {model:<28} {shown[0]:>7} {shown[1]:>7} {shown[2]:>8} {shown[3]:>10}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
