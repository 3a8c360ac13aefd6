"""A design: which calls the threads of a batch make, and which lock is held in which of them.

It is what is known of a program before it is run. Times come from a recording of another design
that does the same work (`sample.py`); together they make a batch to simulate (`build.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import LockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

CALLS, TABLES, NOTHING = "calls", "tables", "nothing"
"""What the lock is held around: whole calls, all of them but the kernels, or nothing."""
NOBODY, GRAPHS, THREADS = "nobody", "graphs", "threads"
"""Who has a lock to themselves; graphs are found under a common lock."""

POLICY_OF_LOCK: Final = {
    "spinlock": LockKind("test-and-set", gil_first=True),
    "mutex": LockKind("parking"),
    "ticket": LockKind("ticket"),
    "mcs": LockKind("mcs"),
    "adaptive": LockKind("adaptive"),
}
"""Policies by the name of a kind of lock; those not named here are parking mutexes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an item of work: what precedes it, and what is in it.

    Attributes
    ----------
    is_long
        It runs kernels; else it only changes tables.
    kernels_before, kernels_within
        Kernels that the thread runs before it, since the call before, and in it.
    nodes
        Entries of the tables that it touches.
    """

    is_long: bool
    kernels_before: int
    kernels_within: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Design:
    """What threads share, and how.

    Attributes
    ----------
    name
        What it is called.
    lock
        What its locks are; None: it has none.
    covers
        `CALLS`, `TABLES` or `NOTHING`.
    apart
        `NOBODY`, `GRAPHS` or `THREADS`.
    has_thread
        A server thread makes the calls: short ones are messages, of long ones the reply is awaited.
    queues
        Kernels are handed to as many streams as there are cores.
    calls
        Those of one item of work.
    """

    name: str
    lock: LockKind | None
    covers: str
    apart: str
    has_thread: bool
    queues: bool
    calls: Sequence[Call]

    @property
    def spins(self) -> bool:
        """Whether threads that wait keep their cores."""
        return (
            self.lock is not None
            and self.lock.kind in ("test-and-set", "back-off", "ticket", "mcs")
            and self.apart == NOBODY
            and self.covers != NOTHING
        )


def kind_of_lock(name: str) -> LockKind | None:
    """Return what a lock is, by the name of its kind; None for no name."""
    return POLICY_OF_LOCK.get(name, LockKind("parking")) if name else None
