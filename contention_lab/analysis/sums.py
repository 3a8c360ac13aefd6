"""Sums of weights by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.distinct import distinct

if TYPE_CHECKING:
    import numpy.typing as npt


def summed(
    ids: npt.NDArray[np.integer[Any]], weights: npt.NDArray[np.number[Any]]
) -> dict[int, float]:
    """Return the sum of the weights of each id that occurs, by ascending id."""
    found, at = distinct(ids)
    sums = np.bincount(at, weights=weights, minlength=len(found))
    return dict(zip((one for (one,) in found), sums.tolist(), strict=True))
