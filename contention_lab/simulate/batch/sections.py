"""Critical sections among the steps of a thread, and steps put into another order.

A remedy says where each step of a section goes (before it, into it, nowhere); the order among steps
that go to the same place stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.history import history_of
from contention_lab.simulate.packing import Op

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from contention_lab.simulate.history import History

BEFORE, AT_ACQUIRE, INSIDE, AT_RELEASE = range(4)
"""Places of a section that a step can go to."""
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Sections:
    """Critical sections of one thread, in order; none within another.

    Attributes
    ----------
    acquire, release
        Places of the steps that begin and end each, int64.
    of_step
        For each step the section it is in or begins or ends, int64; -1 for none.
    """

    acquire: NDArray[np.int64]
    release: NDArray[np.int64]
    of_step: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.acquire)


def sections(
    history: History, locks: Collection[int], records: NDArray[np.bool_] | None = None
) -> Sections:
    """Return the critical sections of some locks.

    Parameters
    ----------
    history
        The steps; their targets are ids of locks.
    locks
        Ids.
    records
        Which holds of the trace count, by position; the last value is for holds that were only
        counted. None: all.
    """
    ops = history.ops
    acquire, release = pairs(ops)
    mine = np.isin(ops["target"][acquire], [*locks])
    if records is not None:
        mine &= records[history.holds[acquire]]
    acquire, release = acquire[mine], release[mine]
    reach = np.maximum.accumulate(np.concatenate([[_NONE], release]))[:-1]
    outer = acquire > reach
    acquire, release = acquire[outer], release[outer]
    of_step = np.full(len(ops), _NONE, np.int64)
    if len(acquire):
        place = np.arange(len(ops))
        last = np.searchsorted(acquire, place, side="right") - 1
        within = (last >= 0) & (place <= release[last])
        of_step = np.where(within, last, _NONE)
    return Sections(acquire, release, of_step)


def pairs(ops: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of acquires, in order, and of the release that belongs to each.

    A lock is acquired again only after its release; acquires that no release follows are left out.
    """
    uses = np.flatnonzero((ops["code"] == Op.ACQUIRE) | (ops["code"] == Op.RELEASE))
    uses = uses[np.argsort(ops["target"][uses], kind="stable")]
    first, second = uses[:-1], uses[1:]
    fits = (
        (ops["code"][first] == Op.ACQUIRE)
        & (ops["code"][second] == Op.RELEASE)
        & (ops["target"][first] == ops["target"][second])
    )
    order = np.argsort(first[fits], kind="stable")
    return first[fits][order], second[fits][order]


def rearranged(
    history: History,
    steps: NDArray[np.int64],
    ops: NDArray[np.void],
    section: NDArray[np.int64],
    place: NDArray[np.int64],
) -> History:
    """Return a history with other steps, in the order that their places say.

    Parameters
    ----------
    history
        Whose.
    steps
        For each new step the old one that it comes from, int64.
    ops
        The new steps, OPS records.
    section
        Where the section begins that the new step belongs to: the place of its acquire; for those
        in no section, its own.
    place
        `BEFORE`, ... within it.
    """
    order = np.lexsort((steps, place, section))
    return history_of(history.thread, ops[order], history.holds[steps][order], history.use)


def without(history: History, steps: NDArray[np.int64]) -> History:
    """Return a history without some steps, given by their places."""
    keep = np.ones(len(history.ops), np.bool_)
    keep[steps] = False
    return history_of(history.thread, history.ops[keep], history.holds[keep], history.use)
