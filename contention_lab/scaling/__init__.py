"""Scaling: from thread counts and times to a law, bounds and a forecast.

`fit_scaling` fits the Universal Scalability Law to the batch times of a sweep. Nothing here
measures or reads traces; numbers go in, numbers and sentences come out.

The fit is imported when first used: who only asks whether numbers can be used has no need of SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contention_lab.scaling.errors import ScalingError, TooFewPointsError

if TYPE_CHECKING:
    from contention_lab.scaling.fit import ScalingFit, fit_scaling

__all__ = ["ScalingError", "ScalingFit", "TooFewPointsError", "fit_scaling"]


def __getattr__(name: str) -> Any:
    """Import the fit when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from contention_lab.scaling import fit

    return getattr(fit, name)
