"""What two or three thread counts still allow one to say: bounds, not a law.

Any law with three coefficients passes through three points, so a fit would be a picture of the
points and nothing could refute it. The bounds hold for every law of the form P/N + S + h(N-1) that
meets the points within the noise of a measurement. It fits nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import linprog

from contention_lab.scaling.law import USL

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray

NOISE: Final = 0.05
"""Relative error of a measurement that the bounds allow for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ranges that contain every coefficient the points allow.

    Attributes
    ----------
    ranges
        (lowest, highest) seconds of P, S and h, by name; None where the points set no upper end.
    noise
        Relative error allowed for: five percent, more where the points contradict the form.
    fewest_thread_seconds
        Least thread-seconds spent on the batch at any measured count: no number of threads N does
        the batch faster than this divided by N, unless it scales better than linearly.
    reason
        Why there is no law.
    """

    ranges: dict[str, tuple[float, float | None]]
    noise: float
    fewest_thread_seconds: float
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the bounds as JSON values."""
        return {
            "ranges": {name: list(pair) for name, pair in self.ranges.items()},
            "noise": self.noise,
            "fewest_thread_seconds": self.fewest_thread_seconds,
            "reason": self.reason,
        }


def bounds_of(threads: FloatArray, seconds: FloatArray, reason: str) -> Bounds:
    """Return what the points allow.

    Parameters
    ----------
    threads, seconds
        Ordered by threads, at least one point.
    reason
        Why no law is fitted.
    """
    scale = float(np.exp(np.mean(np.log(seconds))))
    design = USL.columns(threads) * (scale / seconds)[:, None]
    noise = max(NOISE, 1.001 * _contradiction(design))
    above = np.concatenate([design, -design])
    limits = np.concatenate(
        [np.full(len(threads), 1.0 + noise), np.full(len(threads), -(1.0 - noise))]
    )
    ranges: dict[str, tuple[float, float | None]] = {}
    for index, term in enumerate(USL.terms):
        objective = np.zeros(len(USL.terms))
        objective[index] = 1.0
        lowest = linprog(objective, A_ub=above, b_ub=limits)
        highest = linprog(-objective, A_ub=above, b_ub=limits)
        ranges[term.name] = (
            0.0 if lowest.fun is None else max(0.0, scale * lowest.fun),
            None if highest.fun is None else -scale * highest.fun,
        )
    return Bounds(ranges, noise, float(np.min(threads * seconds)), reason)


def _contradiction(design: FloatArray) -> float:
    """Return the least relative error with which any coefficients meet the points."""
    points, terms = design.shape
    ones = np.ones((points, 1))
    found = linprog(
        np.append(np.zeros(terms), 1.0),
        A_ub=np.block([[design, -ones], [-design, -ones]]),
        b_ub=np.concatenate([np.ones(points), -np.ones(points)]),
    )
    assert found.fun is not None, "an error of one hundred percent meets any points"
    return float(found.fun)
