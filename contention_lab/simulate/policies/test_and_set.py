"""Test-and-set spinlock: waiters look all the time; on a release, whoever comes first gets it.

All waiters read the same cache line, so a hand-off takes longer the more of them spin; a newcomer
may overtake them all. A preempted holder stops everybody; a preempted waiter nobody.
"""

from __future__ import annotations

import math
from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy


def lock(costs: LockCosts) -> LockPolicy:
    """Return the lock's behaviour."""
    return LockPolicy(Order.COMPETITIVE, costs, spin_ns=math.inf)


POLICY: Final = Policy(
    kind="test-and-set",
    about="spinlock without order, waiters look all the time",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0), (16.0, 600.0), (64.0, 2000.0))),
)
