"""The Universal Scalability Law, in the coefficients in which it is published.

In seconds a batch takes T(N) = P/N + S + h(N-1); as a rate, X(N) = γN / (1 + α(N-1) + βN(N-1)),
with γ = 1/T(1), α = S/T(1) and β = h/T(1), where T(1) = P + S (Gunther, "Guerrilla Capacity
Planning"). It fits nothing. β is the cost per pair of threads, whatever its cause: it proves
nothing about cache coherence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, cast

import numpy as np

from contention_lab.scaling.law import USL, FloatArray

if TYPE_CHECKING:
    from contention_lab.scaling.least_squares import FittedLaw


LEAST_SHARE: Final = 1e-3
"""Of an added thread's cost: the least that one thread takes."""

Seconds = TypeVar("Seconds", float, FloatArray)


@dataclass(frozen=True, slots=True)
class UslCoefficients:
    """α, β, γ and what follows from them.

    Attributes
    ----------
    alpha
        Contention: the share of one thread's time that cannot overlap, 0 to 1.
    beta
        Coherency: cost of each pair of threads, as a share of one thread's time.
    gamma
        Throughput of one thread, batches per second.
    """

    alpha: float
    beta: float
    gamma: float

    @property
    def peak_threads(self) -> float | None:
        """Thread count of the highest throughput, √((1-α)/β), at least 1; None without a peak."""
        if self.beta == 0.0:
            return None
        return max(1.0, float(np.sqrt(max(0.0, 1.0 - self.alpha) / self.beta)))

    @property
    def limit(self) -> float | None:
        """Throughput that no thread count passes while β costs nothing, γ/α; None without one."""
        return None if self.alpha == 0.0 else self.gamma / self.alpha


def usl_coefficients(fit: FittedLaw) -> UslCoefficients:
    """Turn the time form into the rate form."""
    parallel, serial, per_thread = _seconds(fit)
    single = float(single_thread_seconds(parallel, serial, per_thread))
    return UslCoefficients(serial / single, per_thread / single, 1.0 / single)


def single_thread_seconds(parallel: Seconds, serial: Seconds, per_thread: Seconds) -> Seconds:
    """Return the time of one thread, at least a thousandth of an added thread's cost.

    Where one thread was not measured and every added thread costs much, nothing is left for one
    thread, and the shares of it would have no size.
    """
    return cast("Seconds", np.maximum(parallel + serial, LEAST_SHARE * per_thread))


def throughput_standard_errors(fit: FittedLaw, threads: FloatArray) -> UslCoefficients:
    """Return the standard errors of α, β, γ under least squares on the throughput.

    They are those of R's package `usl`: from the curvature at the solution, with as many degrees of
    freedom as points less three, whether or not a coefficient sits at its bound.
    """
    single = single_thread_seconds(*_seconds(fit))
    seconds = fit.seconds(threads)
    slope = -fit.law.columns(threads) / seconds[:, None] ** 2
    measured = np.exp(fit.residuals) * seconds
    error = 1.0 / measured - 1.0 / seconds
    variance = float(error @ error) / (len(threads) - 3)
    coefficients = usl_coefficients(fit)
    turn = np.array(
        [
            [-coefficients.alpha, 1.0 - coefficients.alpha, 0.0],
            [-coefficients.beta, -coefficients.beta, 1.0],
            [-coefficients.gamma, -coefficients.gamma, 0.0],
        ]
    )
    turn /= single
    covariance = turn @ np.linalg.inv(slope.T @ slope) @ turn.T * variance
    alpha, beta, gamma = np.sqrt(np.diag(covariance))
    return UslCoefficients(float(alpha), float(beta), float(gamma))


def _seconds(fit: FittedLaw) -> tuple[float, float, float]:
    if fit.law is not USL:
        raise ValueError(f"{fit.law.title} has no α, β and γ")
    parallel, serial, per_thread = (float(value) for value in fit.coefficients)
    return parallel, serial, per_thread
