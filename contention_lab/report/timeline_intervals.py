"""Intervals of a timeline, and fewer of them: what is too short to be seen becomes one run.

A run stands for intervals of one kind in one row that begin within one step of time. It keeps their
number and the sum of their lengths, so that sums stay right however much is merged, and it can be
merged again. It does not know what an interval means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

PIXELS: Final = 3840
"""Of the widest screen."""
_FIRST_STEP_PIXELS: Final = 16
"""The first steps are so much shorter than a pixel: detail is kept for zooming while it fits."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals by row, then start; of one row and kind they rarely overlap.

    Attributes
    ----------
    row
        From 0.
    start_ns, end_ns
        0 <= start < end.
    kind
        A small number.
    context
        Of the longest one of a run.
    count
        1, or how many were merged.
    busy_ns
        Sum of their lengths.
    """

    row: npt.NDArray[np.int32]
    start_ns: Integers
    end_ns: Integers
    kind: npt.NDArray[np.uint8]
    context: npt.NDArray[np.int32]
    count: npt.NDArray[np.int32]
    busy_ns: Integers

    def __len__(self) -> int:
        return len(self.row)

    def columns(self) -> tuple[npt.NDArray[np.integer[Any]], ...]:
        """Return the columns in their order."""
        return (
            self.row,
            self.start_ns,
            self.end_ns,
            self.kind,
            self.context,
            self.count,
            self.busy_ns,
        )

    def where(self, chosen: npt.NDArray[Any]) -> Intervals:
        """Return some of them, by a mask or by positions."""
        return Intervals(*(column[chosen] for column in self.columns()))

    def with_context(self, context: npt.NDArray[np.int32]) -> Intervals:
        """Return the same with other contexts."""
        return Intervals(
            self.row, self.start_ns, self.end_ns, self.kind, context, self.count, self.busy_ns
        )


def intervals(
    row: npt.NDArray[np.integer[Any]],
    start_ns: Integers,
    end_ns: Integers,
    kind: npt.NDArray[np.integer[Any]],
    context: npt.NDArray[np.integer[Any]],
) -> Intervals:
    """Return single intervals in their order; empty ones, and those of a row below 0, are left out.

    Parameters
    ----------
    row, start_ns, end_ns, kind, context
        Of each, in any order.
    """
    kept = np.flatnonzero((row >= 0) & (end_ns > start_ns))
    (place,) = on_one_line((row[kept], start_ns[kept]))
    kept = kept[np.argsort(place, kind="stable")]
    return Intervals(
        row[kept].astype(np.int32),
        start_ns[kept],
        end_ns[kept],
        kind[kept].astype(np.uint8),
        context[kept].astype(np.int32),
        np.ones(len(kept), dtype=np.int32),
        end_ns[kept] - start_ns[kept],
    )


def coarsened(
    layers: Sequence[Intervals],
    limit: int,
    whole_ns: int,
    pinned: Sequence[Integers],
    step_ns: int = 0,
) -> tuple[tuple[Intervals, ...], int]:
    """Merge short intervals until so few are left.

    Parameters
    ----------
    layers
        Their intervals together are counted.
    limit
        Wanted at most; it may not be reached where even pixels of the whole are more.
    whole_ns
        How long the timeline is.
    pinned
        For each layer the starts, ascending, of intervals that stay single.
    step_ns
        Up to where they have been merged already, as returned then.

    Returns
    -------
    layers
        As given, or merged.
    step_ns
        What is at least as long was not merged, neither now nor before; 0 if nothing was.
    """
    found, step = tuple(layers), step_ns
    while sum(map(len, found)) > limit and step < max(1, whole_ns):
        step = 2 * step or max(1, whole_ns // (PIXELS * _FIRST_STEP_PIXELS))
        found = tuple(_merged(*each, step) for each in zip(found, pinned, strict=True))
    return found, step


def _merged(layer: Intervals, pinned: Integers, step_ns: int) -> Intervals:
    short = layer.end_ns - layer.start_ns < step_ns
    if len(pinned):
        at = np.minimum(np.searchsorted(pinned, layer.start_ns), len(pinned) - 1)
        short &= (pinned[at] != layer.start_ns) | (layer.count > 1)
    parts = [layer.where(~short)]
    for kind in np.unique(layer.kind[short]).tolist():
        parts.append(_runs(layer.where(np.flatnonzero(short & (layer.kind == kind))), step_ns))
    together = Intervals(
        *(np.concatenate(column) for column in zip(*(p.columns() for p in parts), strict=True))
    )
    (place,) = on_one_line((together.row, together.start_ns))
    return together.where(np.argsort(place, kind="stable"))


def _runs(short: Intervals, step_ns: int) -> Intervals:
    """Return the runs of intervals of one kind."""
    bucket = short.start_ns // step_ns
    fresh = np.ones(len(short), dtype=np.bool_)
    fresh[1:] = (bucket[1:] != bucket[:-1]) | (short.row[1:] != short.row[:-1])
    first = np.flatnonzero(fresh)
    run = np.cumsum(fresh) - 1
    is_longest = short.busy_ns == np.maximum.reduceat(short.busy_ns, first)[run]
    longest = np.full(len(first), len(short))
    np.minimum.at(longest, run[is_longest], np.flatnonzero(is_longest))
    return Intervals(
        short.row[first],
        short.start_ns[first],
        np.maximum.reduceat(short.end_ns, first),
        short.kind[first],
        short.context[longest],
        np.add.reduceat(short.count, first),
        np.add.reduceat(short.busy_ns, first),
    )
