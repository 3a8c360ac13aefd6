"""MCS queue lock: each waiter spins on a word of its own; first come, first served.

A hand-off is one cache-line transfer, however many wait (Mellor-Crummey and Scott 1991). When the
next in turn is preempted, all wait for it.
"""

from __future__ import annotations

import math
from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy


def lock(costs: LockCosts) -> LockPolicy:
    """Return the lock's behaviour."""
    return LockPolicy(Order.FIFO, costs, spin_ns=math.inf)


POLICY: Final = Policy(
    kind="mcs",
    about="spinlock, first come first served, each waits on its own word",
    lock=lock,
    defaults=LockCosts(acquire_ns=25.0, release_ns=15.0, handoff_ns=((1.0, 150.0), (64.0, 250.0))),
)
