"""Sums of weights by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def summed(
    ids: npt.NDArray[np.integer[Any]], weights: npt.NDArray[np.number[Any]]
) -> dict[int, float]:
    """Return the sum of the weights of each id that occurs, by ascending id."""
    found, at = np.unique(ids, return_inverse=True)
    sums = np.bincount(at, weights=weights.astype(np.float64), minlength=len(found))
    return dict(zip(found.tolist(), sums.tolist(), strict=True))
