"""Who blocks whom, as a table of a size that fits a page.

Rows are the sites or threads that made others wait, columns those that waited; those beyond the
largest are added up as "others". Every cell has its seconds, its share of all waiting and a step of
shade.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from contention_lab.analysis import BlockMatrix
    from contention_lab.analysis.thread_matrix import ThreadMatrix
    from contention_lab.trace import Frame, Thread

MOST_SITES: Final = 10
SHADES: Final = 8
"""Steps of shade; 0 is no waiting at all."""


@dataclass(frozen=True, slots=True)
class Site:
    """A row or column head."""

    title: str
    place: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Waiting of one victim site caused by one culprit site."""

    seconds: float
    share: float
    shade: int


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Culprits down, victims across, both the largest first."""

    culprits: tuple[Site, ...]
    victims: tuple[Site, ...]
    cells: tuple[tuple[Cell, ...], ...]
    culprit_sums: tuple[Cell, ...]
    victim_sums: tuple[Cell, ...]
    total_s: float


def block_table(matrix: BlockMatrix) -> BlockTable:
    """Cut the matrix of `analysis.block_matrix` to a table."""
    return _table(
        matrix.seconds,
        [_site(frame, "hand-off, no recorded hold") for frame in matrix.culprits],
        [_site(frame, "unknown site") for frame in matrix.victims],
    )


def thread_table(matrix: ThreadMatrix) -> BlockTable:
    """Cut the matrix of `analysis.thread_matrix` to a table."""
    return _table(
        matrix.seconds, list(map(_thread, matrix.culprits)), list(map(_thread, matrix.victims))
    )


def _table(
    matrix: npt.NDArray[np.float64], culprits: Sequence[Site], victims: Sequence[Site]
) -> BlockTable:
    seconds = np.asarray(matrix, float).T  # culprits down
    if seconds.size == 0 or seconds.sum() == 0:
        return BlockTable((), (), (), (), (), 0.0)
    rows, seconds = _largest(seconds, culprits)
    columns, turned = _largest(seconds.T, victims)
    seconds = turned.T
    total = float(seconds.sum())
    largest = float(seconds.max())

    def cell(value: float) -> Cell:
        return Cell(value, value / total, shade(value / largest))

    return BlockTable(
        rows,
        columns,
        tuple(tuple(cell(float(value)) for value in row) for row in seconds),
        tuple(Cell(float(v), float(v) / total, 0) for v in seconds.sum(axis=1)),
        tuple(Cell(float(v), float(v) / total, 0) for v in seconds.sum(axis=0)),
        total,
    )


def shade(part: float) -> int:
    """Step of shade for a part of the largest cell: 0 only for nothing at all."""
    return min(SHADES - 1, math.ceil((SHADES - 1) * part))


def _largest(seconds: np.ndarray, sites: Sequence[Site]) -> tuple[tuple[Site, ...], np.ndarray]:
    """Rows by descending sum, those without waiting dropped, the small ones added up."""
    sums = seconds.sum(axis=1)
    order = [int(i) for i in np.argsort(-sums, kind="stable") if sums[i] > 0]
    shown = order if len(order) <= MOST_SITES else order[: MOST_SITES - 1]
    rest = order[len(shown) :]
    heads = [sites[i] for i in shown]
    rows = [seconds[i] for i in shown]
    if rest:
        heads.append(Site(f"{len(rest)} others", ""))
        rows.append(seconds[rest].sum(axis=0))
    return tuple(heads), np.array(rows)


def _site(frame: Frame | None, absent: str) -> Site:
    if frame is None:
        return Site(absent, "")
    if not frame.filename:  # a state such as waiting for the GIL, not a place
        return Site(name(frame.function), "")
    return Site(name(frame.function), f"{short_path(frame.filename)}:{frame.line}")


def _thread(thread: Thread | None) -> Site:
    if thread is None:
        return Site("hand-off, or nobody known", "")
    return Site(name(thread.label), "")
