"""Parking mutex: waiters sleep; a release wakes one, and until it runs anybody may take the lock.

That a newcomer barges in while the woken waiter is on its way keeps throughput up: the lock is not
idle during a wake-up. Its price is unfairness, and a wake-up for nothing when the woken one finds
the lock taken and sleeps again. `costs.spin_ns` lets waiters spin for a while before they sleep.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy


def lock(costs: LockCosts) -> LockPolicy:
    """Return the lock's behaviour."""
    return LockPolicy(Order.COMPETITIVE, costs, spin_ns=costs.spin_ns)


POLICY: Final = Policy(
    kind="parking",
    about="mutex: waiters sleep, newcomers may barge in (threading.Lock, Mutex)",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0),)),
)
