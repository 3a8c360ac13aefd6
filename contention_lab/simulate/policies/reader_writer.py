"""Phase-fair reader-writer lock: readers share it; waiting readers and writers take turns.

After a writer all readers that wait go in together, after them one writer (Brandenburg and Anderson
2010). A reader that arrives while a writer waits, waits too, so that neither side starves. Waiters
sleep, and are handed the lock.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy, Sharing, Use
from contention_lab.simulate.program import Step, acquire, release


def lock(costs: LockCosts) -> LockPolicy:
    """Return the lock's behaviour."""
    return LockPolicy(Order.PHASE_FAIR, costs, spin_ns=costs.spin_ns)


def section(use: Use, body: Step) -> list[Step]:
    """Acquire the side that the critical section needs."""
    return [acquire(use.first, use.reads), body, release(use.first, use.reads)]


def exclusive_share(sharing: Sharing) -> float:
    """Return the share of critical sections that only one thread can be in."""
    return 1.0 - sharing.read_share


POLICY: Final = Policy(
    kind="reader-writer",
    about="mutex that readers share; readers and writers in turn",
    lock=lock,
    defaults=LockCosts(acquire_ns=30.0, release_ns=20.0, handoff_ns=((1.0, 100.0),)),
    section=section,
    exclusive_share=exclusive_share,
    tells_readers=True,
    priced_as="parking",
)
