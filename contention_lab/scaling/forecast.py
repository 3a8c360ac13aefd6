"""Throughput at thread counts that were not measured, with an interval that is meant to cover.

Extrapolating one fitted law fails on real tables: it is sure of itself and wrong by a fifth in the
median. Here every curve that public tables make plausible (`curve_prior`) is weighed by how well
it meets the measured points, and the forecast is their weighted median; the interval holds the
weighted curves, the scatter around a curve, and a curve's own wandering from any formula, which
grows with the distance from what was measured: a Bayesian model average, with the constants of
`experience`. It also answers for two or three points, where no law can be fitted: widely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import stdtr

from contention_lab.scaling.curve_prior import CurvePrior, curve_prior
from contention_lab.scaling.experience import EXPERIENCE, Experience

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray

LEVEL: Final = 0.8
MOST_POINTS: Final = 400
"""Beyond this many points neighbours are averaged: a curve has no more to say."""

CARRIED: Final = 1024
"""Curves carried to the thread counts asked for, chosen evenly from all by weight."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Times of the fixed batch at each thread count asked for, in seconds."""

    median_s: FloatArray
    low_s: FloatArray
    high_s: FloatArray


def forecast(
    threads: FloatArray,
    seconds: FloatArray,
    at: FloatArray,
    *,
    level: float = LEVEL,
    experience: Experience = EXPERIENCE,
) -> Forecast:
    """Predict batch times.

    Parameters
    ----------
    threads, seconds
        Ordered by threads, at least one point, repeats allowed.
    at
        Thread counts to predict.
    level
        Share of the measurements there that the interval should contain.
    experience
        Constants of the prior.
    """
    points = _grouped(threads, -np.log(seconds))
    prior = curve_prior(experience, crowded=bool(points.counts[0] > 1.0))
    weighed = _weigh(points, at, prior, experience)
    tail = (1.0 - level) / 2.0
    low, middle, high = (weighed.quantile(share) for share in (tail, 0.5, 1.0 - tail))
    return Forecast(median_s=np.exp(-middle), low_s=np.exp(-high), high_s=np.exp(-low))


@dataclass(frozen=True, slots=True)
class _WeighedCurves:
    """Equal parts of Student's t distributions of log throughput, at each count asked for."""

    centres: FloatArray
    spreads: FloatArray
    freedom: float

    def quantile(self, share: float) -> FloatArray:
        """Return a quantile at each thread count, by bisection."""
        low = np.min(self.centres - 30.0 * self.spreads, axis=0)
        high = np.max(self.centres + 30.0 * self.spreads, axis=0)
        for _ in range(40):
            middle = (low + high) / 2.0
            standard = (middle - self.centres) / self.spreads
            below = np.mean(stdtr(self.freedom, standard), axis=0)
            low = np.where(below < share, middle, low)
            high = np.where(below < share, high, middle)
        return np.asarray((low + high) / 2.0, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Points:
    """Distinct thread counts, the mean log throughput at each, and what the means leave out."""

    counts: FloatArray
    logs: FloatArray
    repeats: FloatArray
    squares_within: float

    @property
    def spare(self) -> float:
        """Number of measurements beyond one per count."""
        return float(self.repeats.sum()) - len(self.counts)


def _grouped(threads: FloatArray, logs: FloatArray) -> _Points:
    """Average repeats, and neighbours where there are too many points."""
    distinct, group = np.unique(threads, return_inverse=True)
    if len(distinct) > MOST_POINTS:
        group = group * MOST_POINTS // len(distinct)
    repeats = np.bincount(group).astype(np.float64)
    counts = np.exp(np.bincount(group, np.log(threads)) / repeats)
    means = np.bincount(group, logs) / repeats
    return _Points(counts, means, repeats, float(np.sum((logs - means[group]) ** 2)))


def _weigh(
    points: _Points, at: FloatArray, prior: CurvePrior, experience: Experience
) -> _WeighedCurves:
    """Weigh every curve by the points, and carry each to the thread counts asked for.

    The log throughput is a curve plus a constant (which is free), plus wandering with Matérn
    covariance in log N, plus scatter. Their common scale has an inverse gamma prior and is
    integrated out, which leaves Student's t (e.g. Rasmussen and Williams, section 2.7).
    """
    places, asked = np.log(points.counts), np.log(at)
    smallest, largest = float(points.counts[0]), float(points.counts[-1])
    everyone = np.arange(len(prior.power))
    covariance = _wandering(places, places, experience) + np.diag(1.0 / points.repeats)
    root = cholesky(covariance, lower=True)
    ones = solve_triangular(root, np.ones_like(places), lower=True)
    misses = points.logs - prior.log_throughput(points.counts, smallest, largest, everyone)
    white = solve_triangular(root, misses.T, lower=True)
    precision = float(ones @ ones)
    level = (ones @ white) / precision
    white = white - np.outer(ones, level)
    usual = experience.scatter_freedom * experience.scatter**2
    squares = np.sum(white**2, axis=0) + points.squares_within + usual
    freedom = experience.scatter_freedom + len(places) + points.spare - 1.0
    support = -0.5 * freedom * np.log(squares)
    weights = np.exp(support - support.max())
    weights /= weights.sum()
    ends = prior.log_throughput(at[-1:], smallest, largest, everyone)[:, 0] + level
    order = np.argsort(ends, kind="stable")
    steps = (np.arange(CARRIED) + 0.5) / CARRIED
    places_in_order = np.searchsorted(np.cumsum(weights[order]), steps)
    kept = order[np.minimum(places_in_order, len(order) - 1)]

    bridge = solve_triangular(root, _wandering(places, asked, experience), lower=True)
    centres = (
        prior.log_throughput(at, smallest, largest, kept)
        + level[kept][:, None]
        + white[:, kept].T @ bridge
    )
    variance = (
        1.0
        + experience.wander**2
        - np.sum(bridge**2, axis=0)
        + (1.0 - bridge.T @ ones) ** 2 / precision
        + experience.drift**2 * np.maximum(0.0, asked - places[-1])
    )
    spreads = np.sqrt(squares[kept] / freedom)[:, None] * np.sqrt(variance)[None, :]
    return _WeighedCurves(centres, spreads, freedom)


def _wandering(places: FloatArray, others: FloatArray, experience: Experience) -> FloatArray:
    """Return the Matérn 3/2 covariance of the wandering, in units of the scatter's variance."""
    distance = np.sqrt(3.0) * np.abs(places[:, None] - others[None, :]) / experience.wander_length
    return np.asarray(experience.wander**2 * (1.0 + distance) * np.exp(-distance), dtype=np.float64)
