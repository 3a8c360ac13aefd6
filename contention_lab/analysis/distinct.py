"""Distinct values of whole columns, and which of them each record has.

What `np.unique` does, without sorting where ids are dense, as a recorder's are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def small(count: int) -> type[np.unsignedinteger[Any]]:
    """Return the dtype for numbers below a count; sorting by few of them is fast."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def distinct(
    *columns: npt.NDArray[np.integer[Any]],
) -> tuple[list[tuple[int, ...]], npt.NDArray[np.integer[Any]]]:
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
        For each record, the position of its combination, unsigned.
    """
    values, which = _distinct(columns[0])
    rows: list[tuple[int, ...]] = [(value,) for value in values.tolist()]
    for column in columns[1:]:
        more, place = _distinct(column)
        key = np.multiply(which, max(1, len(more)), dtype=np.int64)
        key += place
        both, which = _distinct(key)
        rows = [
            (*rows[at // len(more)], value)
            for at, value in zip(both.tolist(), more[both % len(more)].tolist(), strict=True)
        ]
    return rows, which


def grouped(
    *columns: npt.NDArray[np.integer[Any]],
) -> tuple[int, npt.NDArray[np.integer[Any]]]:
    """Return how many combinations of values occur, and which of them each record has.

    They are in ascending order, and counted from 0.
    """
    found, which = _distinct(columns[0])
    for column in columns[1:]:
        more, place = _distinct(column)
        key = np.multiply(which, max(1, len(more)), dtype=np.int64)
        key += place
        found, which = _distinct(key)
    return len(found), which


def values(column: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Return the values that occur, in ascending order."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    if low < 0 or high > 2 * len(column) + 1024:
        return np.unique(column)
    there = np.zeros(high + 1, dtype=np.bool_)
    there[column] = True
    return np.flatnonzero(there)


def among(
    column: npt.NDArray[np.integer[Any]], ids: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.bool_]:
    """Tell for each value, none below 0, whether it is one of some ids."""
    others = 1 + int(ids.max(initial=0))
    if others > 2 * len(column) + 1024:
        return np.isin(column, ids)
    table = np.zeros(others + 1, dtype=np.bool_)
    table[ids] = True
    found: npt.NDArray[np.bool_] = table[np.minimum(column, others)]
    return found


def places(
    ids: npt.NDArray[np.integer[Any]], column: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.integer[Any]]:
    """Return the position of each value in ascending ids, of which it is one; unsigned."""
    if not len(ids) or int(ids[0]) < 0 or int(ids[-1]) > 2 * len(column) + 1024:
        return np.searchsorted(ids, column).astype(small(len(ids)))
    table = np.zeros(int(ids[-1]) + 1, dtype=small(len(ids)))
    table[ids] = np.arange(len(ids))
    found: npt.NDArray[np.integer[Any]] = table[column]
    return found


def _distinct(
    values: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]:
    if not len(values):
        return values, np.zeros(0, dtype=np.uint16)
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 1024:
        found, which = np.unique(values, return_inverse=True)
        return found, which.astype(small(len(found)))
    offset = values if 0 <= low <= high - low else values.astype(np.int64) - low
    base = low if offset is not values else 0
    there = np.zeros(high - base + 1, dtype=np.bool_)
    there[offset] = True
    found = np.flatnonzero(there) + base
    return found, (np.cumsum(there) - 1).astype(small(len(found)))[offset]
