"""Test-and-set spinlock with exponential back-off: waiters look less and less often.

Less traffic than without back-off, at the price of time in which the lock is free and nobody looks,
and of late waiters that rarely win (Anderson 1990).
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy

BACKOFF_NS: Final = (30.0, 30_000.0)
"""From one pause instruction to a thousand, as `SpinLock(backoff=True)` does."""


def lock(costs: LockCosts) -> LockPolicy:
    """Return the lock's behaviour."""
    return LockPolicy(Order.COMPETITIVE, costs, backoff_ns=BACKOFF_NS)


POLICY: Final = Policy(
    kind="back-off",
    about="spinlock without order, waiters look less and less often",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0), (64.0, 300.0))),
)
