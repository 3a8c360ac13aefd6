"""Which law the measured points support, and how much better than the next.

With up to twelve thread counts each law is judged by predicting inner counts left out in turn;
with more, by Akaike's criterion corrected for few points (AICc), which with six or fewer says
nothing. Leaving out an end would judge extrapolation, which is not the laws' but `forecast`'s task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from contention_lab.scaling.law import LAWS
from contention_lab.scaling.least_squares import fit_law

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray, Law
    from contention_lab.scaling.least_squares import FittedLaw

Method = Literal["leave-one-out", "aicc"]

MOST_LEFT_OUT: Final = 12
"""Up to this many thread counts are left out in turn."""

SAME: Final = 1.05
"""Laws whose errors differ by less than this factor are equally good: the simpler one is chosen."""

EXACT: Final = 1e-3
"""Relative errors below this are rounding, not evidence."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One law with what speaks for it.

    Attributes
    ----------
    fit
        To all points.
    score
        Root mean square of the log error at thread counts left out; or AICc. Less is better.
    weight
        Its share of the support, over all candidates.
    """

    fit: FittedLaw
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """All laws that the number of thread counts can refute, best supported first."""

    candidates: tuple[Candidate, ...]
    method: Method
    chosen: Candidate


def compare(threads: FloatArray, seconds: FloatArray, *, cores: float | None = None) -> Comparison:
    """Fit every law that the number of thread counts allows, and choose.

    Parameters
    ----------
    threads, seconds
        Ordered by threads, repeats allowed; at least three different counts.
    cores
        Where the regime is known to change; without it the change is fitted.
    """
    distinct = np.unique(threads)
    laws = [law for law in LAWS if law.freedom + (2 if law.has_knee else 1) <= len(distinct)]
    fits = [fit_law(law, threads, seconds, cores=cores) for law in laws]
    if len(distinct) <= MOST_LEFT_OUT:
        scores = np.array([left_out_error(law, threads, seconds, cores) for law in laws])
        supports = -len(distinct) * np.log(np.maximum(scores, EXACT))
        near = scores <= max(SAME * float(scores.min()), EXACT)
        method: Method = "leave-one-out"
    else:
        scores = np.array([aicc(fit) for fit in fits])
        supports = -0.5 * scores
        near = scores <= float(scores.min()) + 2.0
        method = "aicc"
    weights = np.exp(supports - supports.max())
    weights /= weights.sum()
    order = sorted(range(len(laws)), key=lambda index: -weights[index])
    simplest = min(
        (index for index in order if near[index]), key=lambda index: (laws[index].freedom, index)
    )
    candidates = [
        Candidate(fit, float(score), float(weight))
        for fit, score, weight in zip(fits, scores, weights, strict=True)
    ]
    return Comparison(tuple(candidates[index] for index in order), method, candidates[simplest])


def left_out_error(
    law: Law, threads: FloatArray, seconds: FloatArray, cores: float | None = None
) -> float:
    """Return the root mean square log error at each inner thread count, fitted without it."""
    errors = []
    for count in np.unique(threads)[1:-1]:
        left = threads == count
        fit = fit_law(law, threads[~left], seconds[~left], cores=cores)
        predicted = float(fit.seconds(np.array([count]))[0])
        errors.append(np.log(np.median(seconds[left]) / max(predicted, 1e-300)))
    return float(np.sqrt(np.mean(np.square(errors))))


def aicc(fit: FittedLaw) -> float:
    """Return Akaike's criterion for normal log errors, corrected for few points.

    Source: Hurvich and Tsai, Biometrika 76 (1989). The variance counts as a parameter.
    """
    points = len(fit.residuals)
    parameters = fit.law.freedom + 1
    if points <= parameters + 1:
        return float("inf")
    variance = fit.sum_squares / points + EXACT**2
    correction = 2.0 * parameters * (parameters + 1) / (points - parameters - 1)
    return float(points * np.log(variance) + 2.0 * parameters + correction)
