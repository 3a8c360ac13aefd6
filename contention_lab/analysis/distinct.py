"""Distinct values of whole columns, and which of them each record has.

What `np.unique` does, without sorting where ids are dense, as a recorder's are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def distinct(
    *columns: npt.NDArray[np.integer[Any]],
) -> tuple[list[tuple[int, ...]], npt.NDArray[np.intp]]:
    """Return the combinations of values that occur, in ascending order, and where.

    Parameters
    ----------
    columns
        Arrays of one length.

    Returns
    -------
    combinations
        One value of each column.
    which
        For each record, the position of its combination.
    """
    values, which = _distinct(columns[0])
    rows: list[tuple[int, ...]] = [(value,) for value in values.tolist()]
    for column in columns[1:]:
        more, place = _distinct(column)
        both, which = _distinct(which * max(1, len(more)) + place)
        rows = [
            (*rows[at // len(more)], value)
            for at, value in zip(both.tolist(), more[both % len(more)].tolist(), strict=True)
        ]
    return rows, which


def _distinct(
    values: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.intp]]:
    if not len(values):
        return values, np.zeros(0, dtype=np.intp)
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 1024:
        found, which = np.unique(values, return_inverse=True)
        return found, which
    offset = values.astype(np.int64) - low
    there = np.zeros(high - low + 1, dtype=np.bool_)
    there[offset] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[offset]
