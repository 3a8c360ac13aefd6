"""Semaphore: so many threads at a time as it has permits; waiters sleep, and may be overtaken.

As `threading.Semaphore`: each release wakes another waiter, however many are on their way, which
looks for a permit when it runs. What is serial under a lock is so here to a share of the permits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.policies import parking
from contention_lab.simulate.policies.policy import Policy, Sharing

if TYPE_CHECKING:
    from contention_lab.simulate.lock_policy import LockCosts, LockPolicy

ALL: Final = 2**30
"""Woken waiters that may be on their way: any number."""
USUAL: Final = 2
"""Permits where nobody says how many."""


def lock(costs: LockCosts, permits: int = USUAL) -> LockPolicy:
    """Return the semaphore's behaviour."""
    return replace(parking.lock(costs), wakes_at_once=ALL, permits=permits)


def exclusive_share(_sharing: Sharing) -> float:
    """Return the share of each section that keeps the next one out."""
    return 1.0 / USUAL


POLICY: Final = Policy(
    kind="semaphore",
    about=f"{USUAL} permits: so many threads at a time; waiters sleep",
    lock=partial(lock, permits=USUAL),
    defaults=parking.POLICY.defaults,
    exclusive_share=exclusive_share,
    priced_as="parking",
)
