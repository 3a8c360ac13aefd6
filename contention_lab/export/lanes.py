"""Spans of one thread laid out in lanes, in each of which they nest.

Viewers draw what lies within another span below it, and what merely overlaps it wrongly or not at
all. Holds of two locks may overlap so, since locks need not be released in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]


def lanes(
    thread: Integers, start_ns: npt.NDArray[np.int64], end_ns: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return an order in which spans can be drawn, and the lane of each.

    Parameters
    ----------
    thread, start_ns, end_ns
        Of each span; 0 <= start <= end.

    Returns
    -------
    order
        Positions of the spans by thread, then start, an enclosing one before what it encloses.
    lane
        For each span in that order its lane, from 0; as few as going through them once finds.
    """
    begin, end = on_one_line((thread, start_ns), (thread, end_ns))
    order = np.lexsort((-end, begin))
    begin, end = begin[order], end[order]
    lane = np.zeros(len(order), dtype=np.intp)
    if len(order) < 2:
        return order, lane
    apart = begin[1:] >= np.maximum.accumulate(end)[:-1]
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    last = np.append(first[1:], len(order))
    for low, high in zip(
        first[last - first > 1].tolist(), last[last - first > 1].tolist(), strict=True
    ):
        lane[low:high] = _within(begin[low:high].tolist(), end[low:high].tolist())
    return order, lane


def _within(begins: list[int], ends: list[int]) -> list[int]:
    """Return the lanes of spans that touch one another, by their start."""
    open_ends: list[list[int]] = []
    found = []
    for begin, end in zip(begins, ends, strict=True):
        lane = 0
        while lane < len(open_ends) and not _fits(open_ends[lane], begin, end):
            lane += 1
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(end)
        found.append(lane)
    return found


def _fits(enclosing: list[int], begin: int, end: int) -> bool:
    """Tell whether a span lies within the last one open in a lane, after closing what is over."""
    while enclosing and enclosing[-1] <= begin:
        enclosing.pop()
    return not enclosing or enclosing[-1] >= end
