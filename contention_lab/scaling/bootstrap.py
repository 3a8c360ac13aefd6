"""Parametric bootstrap: how far the coefficients of a law would move if it were measured again.

Noise of the fit's own spread is put on the fitted curve and the law is fitted again, all draws at
once (SciPy fits one problem at a time, which makes a thousand draws take seconds). A knee is not
moved: the intervals hold for the regime change that was found. Symmetric intervals from standard
errors are not offered, since they are wrong for a coefficient near its bound of zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray, Law
    from contention_lab.scaling.least_squares import FittedLaw

ITERATIONS: Final = 40
SETTLED: Final = 1e-9
CONFIDENCE: Final = 0.95


def redraw(fit: FittedLaw, threads: FloatArray, *, draws: int, seed: int) -> FloatArray:
    """Return the coefficients of `draws` refits, shape (draws, terms), in seconds.

    Parameters
    ----------
    fit
        The fit to the measured points; it needs more points than coefficients.
    threads
        The measured thread counts.
    draws
        How many times the measurement is repeated.
    seed
        Of the noise: the same seed gives the same draws.
    """
    spare = len(threads) - fit.law.freedom
    if spare < 1:
        raise ValueError(f"{len(threads)} points leave no freedom for {fit.law.title}")
    spread = np.sqrt(fit.sum_squares / spare)
    logs = np.log(fit.seconds(threads)) + spread * _normal_draws(draws, len(threads), seed)
    return _refit(fit.law, fit.coefficients, threads, fit.knee, logs)


def _normal_draws(draws: int, points: int, seed: int) -> FloatArray:
    """Return quasi-random standard normal noise: the ends of an interval settle sooner with it."""
    lattice = Sobol(points, scramble=False).random_base2(int(np.ceil(np.log2(max(2, draws)))))
    uniform = (lattice[:draws] + np.random.default_rng(seed).random(points)) % 1.0
    return np.asarray(ndtri(np.clip(uniform, 1e-9, 1.0 - 1e-9)), dtype=np.float64)


def interval(values: FloatArray, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the central interval of draws."""
    low, high = np.quantile(values, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(low), float(high)


def _refit(
    law: Law, start: FloatArray, threads: FloatArray, knee: float, logs: FloatArray
) -> FloatArray:
    """Levenberg-Marquardt on log coefficients (which keeps them positive), for every row at once.

    Parameters
    ----------
    logs
        Log of the batch times, shape (draws, points).
    """
    columns = law.columns(threads, knee)
    largest = np.maximum(columns.max(axis=0), 1e-300)
    floor = np.log(1e-8 * np.exp(np.median(logs)) / largest)
    first = np.log(np.maximum(start, np.exp(floor) * 1e4))
    place = np.broadcast_to(first, (len(logs), len(law.terms))).copy()
    damping = np.full(len(logs), 1e-2)
    error = np.log(law.seconds(np.exp(place), threads, knee)) - logs
    cost = np.sum(error**2, axis=1)
    for _ in range(ITERATIONS):
        coefficients = np.exp(place)
        design = law.design(coefficients, threads, knee) * coefficients[:, None, :]
        slope = design / design.sum(axis=2, keepdims=True)
        curvature = np.einsum("dnt,dnu->dtu", slope, slope)
        gradient = np.einsum("dnt,dn->dt", slope, error)
        weight = damping[:, None] * (np.einsum("dtt->dt", curvature) + 1e-9)
        damped = curvature + weight[:, :, None] * np.eye(len(law.terms))
        step = np.linalg.solve(damped, -gradient[:, :, None])[:, :, 0]
        moved = np.maximum(place + np.clip(step, -2.0, 2.0), floor)
        moved_error = np.log(law.seconds(np.exp(moved), threads, knee)) - logs
        moved_cost = np.sum(moved_error**2, axis=1)
        better = moved_cost <= cost
        settled = np.where(better, cost - moved_cost <= SETTLED * cost, damping > 1e6)
        place[better] = moved[better]
        error[better] = moved_error[better]
        cost[better] = moved_cost[better]
        damping = np.where(better, damping / 3.0, damping * 4.0)
        if settled.all():
            break
    coefficients = np.exp(place)
    return np.where(place <= floor, 0.0, coefficients)
