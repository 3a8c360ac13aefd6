"""What the coefficients of a fitted law cannot tell, one sentence each.

A fit says how time grows, never why. These sentences go with the figures wherever they are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray
    from contention_lab.scaling.usl import UslCoefficients

VISIBLE: Final = 0.01
"""Shares smaller than this are not worth a sentence."""


def cannot_tell(
    coefficients: UslCoefficients, threads: FloatArray, peak: float | None
) -> tuple[str, ...]:
    """Return the sentences that apply to these coefficients and this peak."""
    said: list[str] = []
    smallest, largest = float(np.min(threads)), float(np.max(threads))
    if smallest > 1.0:
        said.append(
            f"One thread was not measured (the smallest count is {smallest:g}): the serial share "
            "and the cost of a thread refer to one thread as the law extrapolates it."
        )
    if coefficients.alpha > VISIBLE:
        said.append(
            "The serial part may be a lock, a single-threaded stretch, or too few cores: a fit "
            "does not tell them apart; hold times and the core count do."
        )
    if coefficients.beta * largest > VISIBLE:
        said.append(
            "The cost per added thread may be cache-line traffic, processor time taken from the "
            "holder by spinners, or a preempted holder: that needs hold times, acquisition counts, "
            "context switches and the core count."
        )
    if peak is not None and peak > largest:
        said.append(
            f"The peak at {peak:.0f} threads lies beyond the largest measured count "
            f"({largest:g}) and is an extrapolation."
        )
    return tuple(said)
