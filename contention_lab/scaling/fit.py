"""The scaling law of one series of batch times: the Universal Scalability Law, in seconds too.

`fit_scaling` is what a sweep asks for each of its variants. It compares no laws (see `selection`)
and extrapolates nothing (see `forecast`). It needs four thread counts: a law with three
coefficients goes through any three points, and nothing is left to refute it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.scaling.bootstrap import interval, redraw
from contention_lab.scaling.errors import TooFewPointsError
from contention_lab.scaling.law import AMDAHL, USL, FloatArray
from contention_lab.scaling.least_squares import FittedLaw, fit_law
from contention_lab.scaling.limits import cannot_tell
from contention_lab.scaling.measurements import checked
from contention_lab.scaling.shape import irregularities
from contention_lab.scaling.usl import single_thread_seconds, usl_coefficients

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from contention_lab.scaling.usl import UslCoefficients

FEWEST_POINTS: Final = 4
DRAWS: Final = 2048
SEED: Final = 1


@dataclass(frozen=True, slots=True)
class ScalingFit:
    """The Universal Scalability Law fitted to batch times.

    Attributes
    ----------
    threads, seconds
        The measured points, by thread count, repeats kept; seconds of the whole batch.
    alpha
        Share of one thread's time that cannot overlap.
    beta
        Cost of each pair of threads, as a share of one thread's time.
    gamma
        Batches per second of one thread.
    parallel_s
        Seconds of work that divide by the threads.
    serial_s
        Seconds that stay whatever the threads.
    per_thread_s
        Seconds that each added thread costs.
    peak_threads
        Where the fitted curve is lowest; None where it only falls, or where it would rise only
        beyond the measured counts and may as well not.
    best_threads
        The whole number of threads that does best; None where more is always better.
    ceiling
        Highest speed-up over one thread that the fitted law allows; None for no limit.
    mean_error
        Mean of |fitted / measured - 1|.
    intervals
        95 % intervals from the bootstrap, by name of the coefficient.
    standard_errors
        Standard deviation of the bootstrap's draws, by name of the coefficient.
    amdahl_mean_error
        The same mean error for Amdahl's law, which allows no cost per added thread.
    notes
        What is irregular in the points, and what these numbers cannot tell; one sentence each.
    """

    threads: tuple[float, ...]
    seconds: tuple[float, ...]
    alpha: float
    beta: float
    gamma: float
    parallel_s: float
    serial_s: float
    per_thread_s: float
    peak_threads: float | None
    best_threads: int | None
    ceiling: float | None
    mean_error: float
    intervals: dict[str, tuple[float, float]]
    standard_errors: dict[str, float]
    amdahl_mean_error: float
    notes: tuple[str, ...]

    def predict(self, threads: ArrayLike) -> FloatArray:
        """Return the law's batch time in seconds at any thread counts."""
        counts = np.asarray(threads, dtype=np.float64)
        return self.parallel_s / counts + self.serial_s + self.per_thread_s * (counts - 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the fit as JSON values (never NaN or infinity)."""
        return {
            "model": USL.name,
            "alpha": self.alpha,
            "beta": self.beta,
            "gamma": self.gamma,
            "parallel_s": self.parallel_s,
            "serial_s": self.serial_s,
            "per_thread_s": self.per_thread_s,
            "peak_threads": self.peak_threads,
            "best_threads": self.best_threads,
            "ceiling": self.ceiling,
            "mean_error": self.mean_error,
            "intervals": {name: list(pair) for name, pair in self.intervals.items()},
            "standard_errors": dict(self.standard_errors),
            "amdahl_mean_error": self.amdahl_mean_error,
            "notes": list(self.notes),
        }


def fit_scaling(
    threads: ArrayLike, seconds: ArrayLike, *, draws: int = DRAWS, seed: int = SEED
) -> ScalingFit:
    """Fit the Universal Scalability Law to the times of a fixed batch.

    Parameters
    ----------
    threads
        Thread counts, positive; a count may be repeated.
    seconds
        Time of the whole batch at each, positive.
    draws
        Of the bootstrap.
    seed
        Of the bootstrap.

    Raises
    ------
    TooFewPointsError
        With fewer than four different thread counts.
    ScalingError
        Where the numbers are not positive and finite, or differ in length.
    """
    counts, times = checked(threads, seconds)
    distinct = len(np.unique(counts))
    if distinct < FEWEST_POINTS:
        raise TooFewPointsError(
            f"{distinct} thread counts: a law with three coefficients needs at least "
            f"{FEWEST_POINTS} to be tested at all; measure more thread counts"
        )
    fit = fit_law(USL, counts, times)
    coefficients = usl_coefficients(fit)
    drawn = redraw(fit, counts, draws=draws, seed=seed)
    single = single_thread_seconds(*drawn.T)
    named = {
        "alpha": drawn[:, 1] / single,
        "beta": drawn[:, 2] / single,
        "gamma": 1.0 / single,
        "parallel_s": drawn[:, 0],
        "serial_s": drawn[:, 1],
        "per_thread_s": drawn[:, 2],
    }
    intervals = {name: interval(values) for name, values in named.items()}
    peak = coefficients.peak_threads
    if peak is not None and peak > counts[-1] and intervals["beta"][0] == 0.0:
        peak = None
    best = best_threads(fit, counts, times, peak)
    parallel_s, serial_s, per_thread_s = (float(value) for value in fit.coefficients)
    return ScalingFit(
        threads=tuple(counts.tolist()),
        seconds=tuple(times.tolist()),
        alpha=coefficients.alpha,
        beta=coefficients.beta,
        gamma=coefficients.gamma,
        parallel_s=parallel_s,
        serial_s=serial_s,
        per_thread_s=per_thread_s,
        peak_threads=peak,
        best_threads=best,
        ceiling=_ceiling(fit, coefficients, best),
        mean_error=fit.mean_error,
        intervals=intervals,
        standard_errors={name: float(np.std(values)) for name, values in named.items()},
        amdahl_mean_error=fit_law(AMDAHL, counts, times).mean_error,
        notes=irregularities(counts, times) + cannot_tell(coefficients, counts, peak),
    )


def best_threads(
    fit: FittedLaw, threads: FloatArray, seconds: FloatArray, peak: float | None
) -> int | None:
    """Return the whole thread count next to the peak that does best, None without a peak.

    Where both neighbours of the peak were measured, the measurement decides, not the curve.
    """
    if peak is None:
        return None
    below = max(1, int(np.floor(peak)))
    pair = np.array([below, below + 1], dtype=np.float64)
    measured = [np.median(seconds[threads == count]) for count in pair if count in threads]
    compared = measured if len(measured) == len(pair) else fit.seconds(pair)
    return int(pair[int(np.argmin(compared))])


def _ceiling(fit: FittedLaw, coefficients: UslCoefficients, best: int | None) -> float | None:
    if best is None:
        return None if coefficients.alpha == 0.0 else 1.0 / coefficients.alpha
    lowest = float(fit.seconds(np.array([best], dtype=np.float64))[0])
    return 1.0 if lowest == 0.0 else max(1.0, 1.0 / (coefficients.gamma * lowest))
