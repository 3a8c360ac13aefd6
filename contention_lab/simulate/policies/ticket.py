"""Ticket lock: waiters draw numbers and all watch the one that is served; first come, first served.

Each hand-off has to reach every spinner, so it takes longer the more there are: half a cache-line
transfer for each (Boyd-Wickizer et al. 2012). When the next in turn is preempted, all wait for it.
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
    kind="ticket",
    about="spinlock, first come first served, all watch one word",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0), (16.0, 600.0), (64.0, 2000.0))),
)
