"""Who blocks whom: seconds that each waiting place lost to each holding place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.parties import GIL, culprits, victims

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Frame, Trace


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatrix:
    """Waiting, by who waited and who held.

    Attributes
    ----------
    victims
        User frames that waited, the most first; None for stacks without user code.
    culprits
        User frames that held, the most blamed first; None for hand-offs, holds that were not
        recorded, and stacks without user code; `parties.GIL` for holders that waited for it.
    seconds
        Shape (victims, culprits). Its sum is all the waiting in the blame.
    """

    victims: tuple[Frame | None, ...]
    culprits: tuple[Frame | None, ...]
    seconds: npt.NDArray[np.float64]


def block_matrix(
    trace: Trace, blame: Blame, *, locks: Collection[int] | None = None
) -> BlockMatrix:
    """Return who blocked whom.

    Parameters
    ----------
    trace, blame
        A trace and its blame.
    locks
        Ids of the only locks to look at; all by default.
    """
    waiting, holding = victims(trace), culprits(trace, blame)
    pairs = blame.pairs
    rows = waiting.which[pairs["wait"]]
    mine: npt.NDArray[np.bool_] | bool = True
    if locks is not None:
        mine = np.isin(trace.wait_columns["lock"][pairs["wait"]], list(locks))
    frames = (*holding.frames, GIL)
    shape = len(waiting.frames), len(frames)
    cells = np.zeros(shape)
    for columns, ns in (
        (holding.which, pairs["ns"] - pairs["gil_ns"]),
        (len(holding.frames), pairs["gil_ns"]),
    ):
        cells += np.bincount(
            rows * shape[1] + columns, weights=ns * mine, minlength=cells.size
        ).reshape(shape)
    by_victim, by_culprit = cells.sum(axis=1), cells.sum(axis=0)
    row_order = [int(i) for i in np.argsort(-by_victim, kind="stable") if by_victim[i] > 0]
    column_order = [int(i) for i in np.argsort(-by_culprit, kind="stable") if by_culprit[i] > 0]
    return BlockMatrix(
        tuple(waiting.frames[i] for i in row_order),
        tuple(frames[i] for i in column_order),
        cells[np.ix_(row_order, column_order)] / 1e9,
    )
