"""Scaling: from thread counts and times to a law, bounds and a forecast.

`fit_scaling` fits the Universal Scalability Law to the batch times of a sweep. Nothing here
measures or reads traces; numbers go in, numbers and sentences come out.
"""

from __future__ import annotations

from contention_lab.scaling.errors import ScalingError, TooFewPointsError
from contention_lab.scaling.fit import ScalingFit, fit_scaling

__all__ = ["ScalingError", "ScalingFit", "TooFewPointsError", "fit_scaling"]
