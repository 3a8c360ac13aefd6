"""Fit one law to measured batch times: non-negative least squares, then least squares on the log.

It fits the law it is given; `selection` compares laws. Errors of measured times are multiplicative,
so residuals are differences of logarithms; residuals of the throughput itself are there for parity
with R's package `usl`. Coefficients at their bound of zero stay exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy.optimize import least_squares, nnls

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray, Law

NEGLIGIBLE: Final = 1e-6
"""A term smaller than this share of the batch time at every point is zero."""

TOLERANCE: Final = 1e-14

MOST_KNEES: Final = 32

Residuals = Literal["log", "throughput"]


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law with its coefficients.

    Attributes
    ----------
    law
        The family.
    coefficients
        In seconds, in the order of `law.terms`.
    knee
        Thread count at which the regime changes; infinite where the law has none.
    residuals
        log(measured time / fitted time) of each point.
    """

    law: Law
    coefficients: FloatArray
    knee: float
    residuals: FloatArray

    def seconds(self, threads: FloatArray) -> FloatArray:
        """Return the fitted batch time T(N)."""
        return self.law.seconds(self.coefficients, threads, self.knee)

    @property
    def sum_squares(self) -> float:
        """Sum of the squared log residuals."""
        return float(self.residuals @ self.residuals)

    @property
    def mean_error(self) -> float:
        """Mean of |fitted time / measured time - 1|."""
        return float(np.mean(np.abs(np.expm1(-self.residuals))))


def fit_law(
    law: Law,
    threads: FloatArray,
    seconds: FloatArray,
    *,
    residuals: Residuals = "log",
    cores: float | None = None,
) -> FittedLaw:
    """Fit a law, with the best of the knees tried where it has one.

    Parameters
    ----------
    law
        The family.
    threads
        Thread counts, repeats allowed, shape (points,).
    seconds
        Time of the fixed batch at each, positive, shape (points,).
    residuals
        What is squared: the log of the time, or the throughput 1/T.
    cores
        Where the knee is known to be.

    Returns
    -------
    FittedLaw
        The best of the fits, by the sum of squares asked for.
    """
    tried = knees(law, threads) if cores is None or not law.has_knee else np.array([cores])
    fits = [_fit_at(law, threads, seconds, float(knee), residuals) for knee in tried]
    return min(fits, key=lambda scored: scored[0])[1]


def knees(law: Law, threads: FloatArray) -> FloatArray:
    """Return where a law's knee is tried: at every inner thread count, and between each two."""
    if not law.has_knee:
        return np.array([np.inf])
    distinct = np.unique(threads)
    if len(distinct) <= 2:
        return distinct[:1]
    between = np.sqrt(distinct[:-1] * distinct[1:])
    tried = np.sort(np.concatenate([distinct[1:-1], between]))
    if len(tried) > MOST_KNEES:
        tried = tried[np.linspace(0, len(tried) - 1, MOST_KNEES).round().astype(int)]
    return tried


def _fit_at(
    law: Law, threads: FloatArray, seconds: FloatArray, knee: float, residuals: Residuals
) -> tuple[float, FittedLaw]:
    scale = float(np.exp(np.mean(np.log(seconds))))
    times = seconds / scale
    logs = np.log(times)

    def difference(coefficients: FloatArray) -> FloatArray:
        fitted = np.maximum(law.seconds(coefficients, threads, knee), 1e-300)
        return np.log(fitted) - logs if residuals == "log" else 1.0 / fitted - 1.0 / times

    def derivative(coefficients: FloatArray) -> FloatArray:
        fitted = np.maximum(law.seconds(coefficients, threads, knee), 1e-300)
        power = fitted if residuals == "log" else -(fitted**2)
        return law.design(coefficients, threads, knee) / power[:, None]

    found = least_squares(
        difference,
        start(law, threads, times, knee),
        jac=derivative,
        bounds=(0.0, np.inf),
        xtol=TOLERANCE,
        ftol=TOLERANCE,
        gtol=TOLERANCE,
    )
    coefficients = np.asarray(found.x, dtype=np.float64)
    share = law.columns(threads, knee) * coefficients
    coefficients[np.all(share < NEGLIGIBLE * times[:, None], axis=0)] = 0.0
    fitted = law.seconds(coefficients, threads, knee)
    fit = FittedLaw(law, coefficients * scale, knee, logs - np.log(fitted))
    return float(found.cost), fit


def start(law: Law, threads: FloatArray, seconds: FloatArray, knee: float) -> FloatArray:
    """Return coefficients to start from: non-negative least squares on relative errors.

    A law that is the largest of two sums is started from the best division of the points between
    them: the first so many points (by threads) to the first sum, the rest to the second.
    """
    columns = law.columns(threads, knee) / seconds[:, None]
    if len(law.groups) == 1:
        coefficients, _ = nnls(columns, np.ones_like(seconds))
        return _lifted(coefficients, columns)
    best = np.ones(len(law.terms))
    least = np.inf
    first, second = (list(group) for group in law.groups)
    for bound in np.unique(threads):
        below = threads <= bound
        if below.all() and len(np.unique(threads)) > 1:
            continue
        coefficients = np.zeros(len(law.terms))
        coefficients[first], _ = nnls(columns[below][:, first], np.ones(int(below.sum())))
        above = ~below if not below.all() else below
        coefficients[second], _ = nnls(columns[above][:, second], np.ones(int(above.sum())))
        lifted = _lifted(coefficients, columns)
        error = np.log(law.seconds(lifted, threads, knee) / seconds)
        if float(error @ error) < least:
            least, best = float(error @ error), lifted
    return best


def _lifted(coefficients: FloatArray, columns: FloatArray) -> FloatArray:
    """Lift zero coefficients off their bound, where every derivative would be lost."""
    largest = np.maximum(columns.max(axis=0), 1e-300)
    return np.asarray(np.maximum(coefficients, 1e-6 / largest), dtype=np.float64)
