"""From what a sweep measured to `result.json` and the report.

It asks `scaling` for the law, `diagnosis` for the verdict and `report` for the page, and draws no
conclusion of its own beyond the bound: with one thread nobody waits, so the time the worst lock is
held then is work that has to be done one at a time, whatever the number of threads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contention_lab.report import sweep_page
from contention_lab.scaling import ScalingFit, TooFewPointsError, fit_scaling
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.expectation import observed_shape
from contention_lab.sweep.host import machine_facts, python_facts, usable_cores
from contention_lab.sweep.machine_load import load_warnings
from contention_lab.sweep.points import Series, differing_losses, series_of
from contention_lab.sweep.preview import is_of, read_prediction
from contention_lab.sweep.proof import proof
from contention_lab.sweep.verdict import verdict_on
from contention_lab.sweep.versions import package_version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contention_lab.sweep.runner import Outcome
    from contention_lab.sweep.scenario import Scenario
    from contention_lab.trace import Trace

SCHEMA: Final = 1
LOCKS_LISTED: Final = 25
"""Locks of a point that `result.json` lists, the worst first; the trace has all of them."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A result, and where its files are.

    Attributes
    ----------
    result
        What `result.json` holds.
    report
        Path of the page.
    """

    result: Mapping[str, Any]
    report: Path


def conclude(
    scenario: Scenario, outcome: Outcome, folder: Path, *, source: bool = True
) -> Conclusion:
    """Write `result.json` and `report.html`, with source of the program or not, into `folder`.

    Raises
    ------
    SweepError
        No point was measured.
    """
    series, missing = series_of(scenario, outcome, folder)
    if not any(points.timed for points in series.values()):
        reason = f": {missing[0]}" if missing else ""
        raise SweepError(f"no point was measured{reason}")
    result = _result(scenario, outcome, series, missing)
    if scenario.predict is not None:
        predicted = read_prediction(folder)
        if predicted is not None and is_of(predicted, scenario):
            result["prediction"] = {**predicted, "proof": proof(predicted, result["points"])}
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    report = folder / "report.html"
    report.write_text(sweep_page(result, _traces(series), source=source), encoding="utf-8")
    return Conclusion(result, report)


def page_so_far(
    scenario: Scenario, outcome: Outcome, folder: Path, *, source: bool = True
) -> str | None:
    """Return the page of a sweep that still runs; None before a point is whole.

    It says that it is not the last one, and to reload it: it never does so by itself, which would
    take away what somebody is looking at.
    """
    series, _ = series_of(scenario, outcome, folder)
    if not any(points.timed for points in series.values()):
        return None
    runs = len(outcome.results)
    line = f"The sweep still runs: {runs} runs have ended. Reload this page to see more."
    result = _result(scenario, outcome, series, [line])
    result |= {"started": "", "wall_s": None}
    result["machine"] |= {"load_before": {}, "load_during": {}}
    return sweep_page(result, _traces(series), source=source)


def _traces(series: Mapping[str, Series]) -> dict[tuple[str, int], Trace]:
    return {
        (variant, threads): run.trace
        for variant, points in series.items()
        for threads, run in points.traced.items()
    }


def _result(
    scenario: Scenario, outcome: Outcome, series: Mapping[str, Series], missing: list[str]
) -> dict[str, Any]:
    fits = {variant: _fit(points) for variant, points in series.items()}
    blas: Any = next((run["blas"] for run in outcome.results.values() if run["blas"]), [])
    warnings = load_warnings(outcome.load_before, outcome.load_during) + differing_losses(series)
    return {
        "schema": SCHEMA,
        "scenario": _scenario(scenario),
        "machine": {
            **machine_facts(),
            "blas": blas,
            "load_before": outcome.load_before.to_json(),
            "load_during": outcome.load_during.to_json(),
            "warnings": warnings,
        },
        "python": python_facts(),
        "package_version": package_version(),
        "started": outcome.started.isoformat(timespec="seconds"),
        "wall_s": outcome.wall_s,
        "order_seed": outcome.seed,
        "complete": not missing,
        "missing": missing,
        "variants": list(series),
        "points": [point for points in series.values() for point in points.to_json()],
        "fits": [
            {"variant": variant, **fit.to_json()}
            for variant, fit in fits.items()
            if fit is not None
        ],
        "bounds": [bound for points in series.values() if (bound := _bound(points)) is not None],
        "locks": [
            {"variant": variant, "threads": threads, **row.to_json()}
            for variant, points in series.items()
            for threads, run in sorted(points.traced.items())
            for row in run.locks[:LOCKS_LISTED]
        ],
        "observed": [_observed(scenario, points) for points in series.values() if points.timed],
        "verdict": verdict_on(series, fits, unit=scenario.unit, cores=usable_cores()),
    }


def _scenario(scenario: Scenario) -> dict[str, Any]:
    parameters = dict(scenario.parameters)
    if scenario.variants is not None:
        values = scenario.variants.values
        parameters[scenario.variants.key] = values[0] if len(values) == 1 else list(values)
    return {
        "name": scenario.name,
        "title": scenario.title,
        "story": scenario.story,
        "workload": scenario.workload,
        "unit": scenario.unit,
        "parameters": parameters,
        "threads": list(scenario.threads),
        "repeats": scenario.repeats,
        "expect": {
            variant or "all": {"shape": expected.shape, "verdict": list(expected.verdicts)}
            for variant, expected in scenario.expectations.items()
            if expected.shape is not None or expected.verdicts
        },
    }


def _fit(points: Series) -> ScalingFit | None:
    """Fit every timed run; None where there are too few thread counts for a law."""
    threads = [count for count, results in points.timed.items() for _ in results]
    seconds = [result["wall_s"] for results in points.timed.values() for result in results]
    try:
        return fit_scaling(threads, seconds)
    except TooFewPointsError:
        return None


def _bound(points: Series) -> dict[str, Any] | None:
    label = points.worst_lock()
    if label is None or 1 not in points.traced:
        return None
    serial_hold_s = points.traced[1].hold_s(label)
    return {
        "variant": points.variant,
        "lock": label,
        "serial_hold_s": serial_hold_s,
        "text": f"{label} is held for {serial_hold_s:.3g} s of the batch with one thread, and one "
        "thread at a time can hold it: no number of threads brings the batch below that.",
    }


def _observed(scenario: Scenario, points: Series) -> dict[str, Any]:
    expected = scenario.expectation(points.variant).shape
    shape = observed_shape(points.median_s())
    return {
        "variant": points.variant,
        "shape": shape,
        "expected_shape": expected,
        "as_expected": None if expected is None or shape is None else shape == expected,
    }
