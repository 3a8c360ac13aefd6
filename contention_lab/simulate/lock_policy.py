"""A lock as the engine sees it: who gets it next, how the others wait, and what that costs.

The mechanisms are few and orthogonal, and a policy is a choice among them; the policies themselves
are in `policies/`, one to a file. Costs are measured (`calibration.py`), mechanisms are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from contention_lab.simulate.packing import LOCKS, Order, SpinEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LockCosts:
    """What a lock's operations cost on some host.

    Attributes
    ----------
    acquire_ns, release_ns
        CPU time of taking a free lock that this thread had last, and of releasing, in ns.
    transfer_ns
        More for a free lock that another thread had last: its cache line has to come over, in ns.
    handoff_ns
        (waiters, ns): from a release until the next owner, which spins on a core, goes on; as a
        function of how many spin on cores, that one included. Straight between the points, level
        beyond them. Empty: `transfer_ns`.
    spin_ns
        How long a thread spins before it parks, in ns, for locks that do both.
    park_ns
        CPU time of going to sleep, in ns.
    wake_call_ns
        CPU time that the releasing thread spends on waking another, in ns.
    wake_extra_ns
        Time of a wake-up beyond what the machine needs (`Machine.wake_other_ns`), in ns.
    """

    acquire_ns: float = 15.0
    release_ns: float = 5.0
    transfer_ns: float = 60.0
    handoff_ns: tuple[tuple[float, float], ...] = ()
    spin_ns: float = 0.0
    park_ns: float = 1.0e3
    wake_call_ns: float = 1.5e3
    wake_extra_ns: float = 0.0

    def table(self, waiters: int) -> NDArray[np.float64]:
        """Return the hand-off costs with 0 to `waiters` waiters, in ns; shape (waiters + 1,)."""
        counts = np.arange(waiters + 1, dtype=np.float64)
        if not self.handoff_ns:
            return np.full(len(counts), self.transfer_ns)
        knots = np.array(sorted(self.handoff_ns), dtype=np.float64)
        return np.interp(counts, knots[:, 0], knots[:, 1])

    def to_json(self) -> dict[str, Any]:
        """Return the costs by name."""
        return {
            "acquire_ns": self.acquire_ns,
            "release_ns": self.release_ns,
            "transfer_ns": self.transfer_ns,
            "handoff_ns": [list(point) for point in self.handoff_ns],
            "spin_ns": self.spin_ns,
            "park_ns": self.park_ns,
            "wake_call_ns": self.wake_call_ns,
            "wake_extra_ns": self.wake_extra_ns,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> LockCosts:
        """Return costs written by `to_json`; what is missing is as by default.

        Raises
        ------
        ValueError
            If something is no cost.
        """
        given: dict[str, Any] = {}
        try:
            for name, value in found.items():
                if name == "handoff_ns":
                    given[name] = tuple((float(at), float(ns)) for at, ns in value)
                else:
                    given[name] = float(value)
            costs = cls(**given)
        except TypeError as error:
            raise ValueError(f"costs of a lock: {error}") from error
        costs.check()
        return costs

    def check(self) -> None:
        """Raise ValueError if a cost is negative or no number."""
        values = [ns for point in self.handoff_ns for ns in point]
        values += [self.acquire_ns, self.release_ns, self.transfer_ns, self.park_ns, self.spin_ns]
        values += [self.wake_call_ns, self.wake_extra_ns]
        if not all(0 <= value < math.inf for value in values):
            raise ValueError("costs of a lock must be finite and not negative")


NO_COSTS = LockCosts(acquire_ns=0.0, release_ns=0.0, transfer_ns=0.0, park_ns=0.0, wake_call_ns=0.0)
"""A lock that takes no time of its own."""


@dataclass(frozen=True, slots=True)
class LockPolicy:
    """A lock's policy.

    Attributes
    ----------
    order
        Who gets a released lock.
    costs
        What its operations cost.
    spin_ns
        CPU time a waiter spins before `spin_end`, in ns: infinite for pure spinning, 0 to park at
        once.
    spin_end
        What comes after spinning.
    adaptive
        Spin only while the owner is on a core.
    backoff_ns
        (least, greatest) time between two looks of a waiter that backs off, in ns: it doubles
        from the one to the other. (0, 0): waiters look all the time.
    wakes_at_once
        How many woken waiters may be on their way to a lock without an order: 1 where a release
        wakes somebody only if nobody is coming yet (a futex with a "contended" mark).
    gil_first
        Where there is a GIL, a waiter that sees the lock free takes the GIL before it tries, so
        that nobody owns the lock while waiting for the GIL (as `SpinLock` does).
    permits
        How many threads may have it at a time: more than one of a semaphore.
    """

    order: Order
    costs: LockCosts
    spin_ns: float = 0.0
    spin_end: SpinEnd = SpinEnd.PARK
    adaptive: bool = False
    backoff_ns: tuple[float, float] = (0.0, 0.0)
    wakes_at_once: int = 1
    gil_first: bool = False
    permits: int = 1

    def __post_init__(self) -> None:
        self.costs.check()
        if self.permits < 1:
            raise ValueError(f"{self.permits} permits: at least one is needed")
        if not self.spin_ns >= 0 or not 0 <= self.backoff_ns[0] <= self.backoff_ns[1] < math.inf:
            raise ValueError("times of a lock must not be negative, nor back-off shrink")


def packed_locks(
    policies: Sequence[LockPolicy], threads: int
) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """Return LOCKS records and their hand-off costs, which locks with the same policy share.

    Parameters
    ----------
    policies
        One for each lock.
    threads
        How many threads there are, and so how long the tables of costs have to be.
    """
    unique = {id(policy): policy for policy in policies}
    rows = np.zeros(len(unique), LOCKS)
    tables = [policy.costs.table(max(threads, 1)) for policy in unique.values()]
    place = 0
    for row, policy, table in zip(rows, unique.values(), tables, strict=True):
        costs = policy.costs
        row["order"], row["spin_end"] = policy.order, policy.spin_end
        row["adaptive"], row["spin_ns"] = policy.adaptive, policy.spin_ns
        row["wakes_at_once"], row["gil_first"] = policy.wakes_at_once, policy.gil_first
        row["permits"] = policy.permits
        row["backoff_min_ns"], row["backoff_max_ns"] = policy.backoff_ns
        for name in (
            "acquire_ns",
            "release_ns",
            "transfer_ns",
            "park_ns",
            "wake_call_ns",
            "wake_extra_ns",
        ):
            row[name] = getattr(costs, name)
        row["costs"], row["costs_length"] = place, len(table)
        place += len(table)
    number = {key: at for at, key in enumerate(unique)}
    every = rows[[number[id(policy)] for policy in policies]]
    return every, np.concatenate(tables) if tables else np.zeros(0)
