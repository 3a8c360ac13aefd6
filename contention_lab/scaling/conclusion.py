"""Everything that can be concluded from one table of measurements, and nothing more.

It brings together law, bounds and forecast; their sentences are in `wording`. It is what the `fit`
command prints, as text or as JSON. Fewer than four thread counts get bounds and a forecast, no law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.scaling.bounds import Bounds, bounds_of
from contention_lab.scaling.errors import TooFewPointsError
from contention_lab.scaling.fit import DRAWS, ScalingFit, fit_scaling
from contention_lab.scaling.forecast import LEVEL, forecast
from contention_lab.scaling.law import AMDAHL, LINEAR, USL
from contention_lab.scaling.least_squares import fit_law
from contention_lab.scaling.selection import Comparison, compare
from contention_lab.scaling.shape import irregularities
from contention_lab.scaling.usl import (
    single_thread_seconds,
    throughput_standard_errors,
    usl_coefficients,
)
from contention_lab.scaling.wording import Verdict, figure, verdict_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.scaling.law import FloatArray
    from contention_lab.scaling.measurements import Measurements
    from contention_lab.scaling.selection import Candidate

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Prediction:
    """A forecast at one thread count, in the table's own unit."""

    threads: float
    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Return the prediction as JSON values."""
        return {
            "threads": self.threads,
            "value": self.value,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a table of measurements allows one to say.

    Attributes
    ----------
    measurements
        The table.
    comparison
        All laws fitted to it; None with too few thread counts.
    usl
        The Universal Scalability Law with intervals; None with too few thread counts.
    bounds
        With too few thread counts, what can be said instead.
    predictions
        At the thread counts asked for, with 80 % intervals.
    verdict
        Kind, one sentence, evidence, notes and what to do next.
    """

    measurements: Measurements
    comparison: Comparison | None
    usl: ScalingFit | None
    bounds: Bounds | None
    predictions: tuple[Prediction, ...]
    verdict: Verdict

    def table_lines(self) -> tuple[str, ...]:
        """Return laws and predictions as lines of text."""
        lines = []
        if self.comparison is not None:
            judged = "left out" if self.comparison.method == "leave-one-out" else "AICc"
            lines.append(f"{'law':<14} {'error':>7} {judged:>9}  {'formula and coefficients'}")
            lines += [
                _model_line(candidate, candidate is self.comparison.chosen, judged)
                for candidate in self.comparison.candidates
            ]
        if self.predictions:
            lines.append(f"{'threads':>8} {'predicted':>12} {'80 % interval':>26}")
            lines += [
                f"{found.threads:>8g} {figure(found.value):>12} "
                f"{figure(found.low) + ' to ' + figure(found.high):>26}  {self.measurements.unit}"
                for found in self.predictions
            ]
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values (never NaN or infinity)."""
        table = self.measurements
        comparison = self.comparison
        return {
            "schema": SCHEMA,
            "kind": table.kind,
            "work": table.work,
            "unit": table.unit,
            "points": np.column_stack([table.threads, table.values]).tolist(),
            "verdict": self.verdict.to_json(),
            "chosen": None if comparison is None else comparison.chosen.fit.law.name,
            "selection": None if comparison is None else comparison.method,
            "models": []
            if comparison is None
            else [_model_json(candidate) for candidate in comparison.candidates],
            "usl": None if self.usl is None else self.usl.to_json(),
            "usl_on_throughput": None if self.usl is None else _parity_json(table),
            "bounds": None if self.bounds is None else self.bounds.to_json(),
            "confidence": LEVEL,
            "predictions": [prediction.to_json() for prediction in self.predictions],
            "notes": list(self.verdict.notes),
        }


def conclude(
    measurements: Measurements,
    *,
    at: Sequence[float] | None = None,
    cores: float | None = None,
    draws: int = DRAWS,
) -> Conclusion:
    """Draw every conclusion from a table.

    Parameters
    ----------
    measurements
        The table, of at least one point.
    at
        Thread counts to predict; twice and four times the largest measured by default.
    cores
        Of the machine, where known: laws with a knee have it there.
    draws
        Of the bootstrap.
    """
    threads, seconds = measurements.threads, measurements.seconds
    largest = float(threads[-1])
    asked = np.array(at if at is not None else [2.0 * largest, 4.0 * largest], dtype=np.float64)
    predictions = _predictions(measurements, asked)
    try:
        usl = fit_scaling(threads, seconds, draws=draws)
    except TooFewPointsError as error:
        bounds = bounds_of(threads, seconds, str(error))
        verdict = verdict_on(measurements, None, None, bounds, irregularities(threads, seconds))
        return Conclusion(measurements, None, None, bounds, predictions, verdict)
    comparison = compare(threads, seconds, cores=cores)
    verdict = verdict_on(measurements, comparison, usl, None, usl.notes)
    return Conclusion(measurements, comparison, usl, None, predictions, verdict)


def _predictions(table: Measurements, at: FloatArray) -> tuple[Prediction, ...]:
    if not len(at):
        return ()
    found = forecast(table.threads, table.seconds, at)
    ends = np.sort(
        np.stack([table.in_own_unit(at, found.low_s), table.in_own_unit(at, found.high_s)], axis=1),
        axis=1,
    )
    values = table.in_own_unit(at, found.median_s)
    return tuple(
        Prediction(float(count), float(value), float(low), float(high))
        for count, value, (low, high) in zip(at, values, ends, strict=True)
    )


def _model_line(candidate: Candidate, chosen: bool, judged: str) -> str:
    fit = candidate.fit
    values = ", ".join(
        f"{term.name} {figure(float(value))}"
        for term, value in zip(fit.law.terms, fit.coefficients, strict=True)
    )
    knee = f", K {fit.knee:g}" if np.isfinite(fit.knee) else ""
    score = f"{100.0 * candidate.score:.1f} %" if judged == "left out" else f"{candidate.score:.1f}"
    mark = " *" if chosen else ""
    return (
        f"{fit.law.name + mark:<14} {100.0 * fit.mean_error:>5.1f} % {score:>9}  "
        f"{fit.law.formula}: {values}{knee}"
    )


def _model_json(candidate: Candidate) -> dict[str, Any]:
    fit = candidate.fit
    coefficients = {
        term.name: float(value) for term, value in zip(fit.law.terms, fit.coefficients, strict=True)
    }
    found: dict[str, Any] = {
        "model": fit.law.name,
        "title": fit.law.title,
        "formula": fit.law.formula,
        "coefficients": coefficients,
        "knee": float(fit.knee) if np.isfinite(fit.knee) else None,
        "mean_error": fit.mean_error,
        "score": candidate.score if np.isfinite(candidate.score) else None,
        "weight": candidate.weight,
    }
    if fit.law in (LINEAR, AMDAHL, USL):
        serial, per_thread = (
            coefficients.get("serial_s", 0.0),
            coefficients.get("per_thread_s", 0.0),
        )
        single = single_thread_seconds(coefficients["parallel_s"], serial, per_thread)
        found["alpha"] = float(serial / single)
        found["beta"] = float(per_thread / single)
        found["gamma"] = float(1.0 / single)
    return found


def _parity_json(table: Measurements) -> dict[str, Any]:
    """Return the fit on the throughput itself, with the standard errors of R's package `usl`."""
    fit = fit_law(USL, table.threads, table.seconds, residuals="throughput")
    coefficients = usl_coefficients(fit)
    errors = throughput_standard_errors(fit, table.threads)
    misses = 1.0 / table.seconds - 1.0 / fit.seconds(table.threads)
    freedom = len(table.threads) - USL.freedom
    return {
        "alpha": coefficients.alpha,
        "beta": coefficients.beta,
        "gamma": coefficients.gamma,
        "standard_errors": {
            "alpha": errors.alpha,
            "beta": errors.beta,
            "gamma": errors.gamma,
        },
        "residual_standard_error": float(np.sqrt(misses @ misses / freedom)),
        "degrees_of_freedom": freedom,
        "peak_threads": coefficients.peak_threads,
        "limit": coefficients.limit,
    }
