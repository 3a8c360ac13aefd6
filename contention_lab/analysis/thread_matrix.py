"""Which thread blocks which: seconds that each waiting thread lost to each holding thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.distinct import places, values
from contention_lab.analysis.parties import culprit_threads

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Thread, Trace


@dataclass(frozen=True, slots=True, eq=False)
class ThreadMatrix:
    """Waiting, by the thread that waited and the one that held.

    Attributes
    ----------
    victims
        Threads that waited, the most first.
    culprits
        Threads that held, the most blamed first; None for hand-offs, and for holders of which
        nothing is known.
    seconds
        Shape (victims, culprits). Its sum is all the waiting in the blame.
    """

    victims: tuple[Thread, ...]
    culprits: tuple[Thread | None, ...]
    seconds: npt.NDArray[np.float64]


def thread_matrix(trace: Trace, blame: Blame) -> ThreadMatrix:
    """Return which thread blocked which."""
    pairs = blame.pairs
    victim, culprit = trace.wait_columns["thread"][pairs["wait"]], culprit_threads(trace, blame)
    rows, columns = values(victim), values(culprit)
    shape = len(rows), len(columns)
    flat = places(rows, victim).astype(np.int64) * shape[1] + places(columns, culprit)
    cells = np.bincount(flat, weights=pairs["ns"], minlength=shape[0] * shape[1])
    cells = cells.reshape(shape)
    by_row = np.argsort(-cells.sum(axis=1), kind="stable")
    by_column = np.argsort(-cells.sum(axis=0), kind="stable")
    return ThreadMatrix(
        tuple(trace.thread(int(rows[at])) for at in by_row),
        tuple(trace.thread(int(columns[at])) if columns[at] else None for at in by_column),
        cells[np.ix_(by_row, by_column)] / 1e9,
    )
