"""Channel: no lock, but a server thread that does the work; callers send a request and sleep.

One server serialises as a lock does, and costs two wake-ups a request unless it is kept busy; but
what it works on stays in one core's cache, and no caller is ever preempted holding anything.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy, Use
from contention_lab.simulate.program import Step, call


def lock(costs: LockCosts) -> LockPolicy:
    """Return the channel's behaviour."""
    return LockPolicy(Order.CHANNEL, costs)


def section(use: Use, body: Step) -> list[Step]:
    """Have the server do the work."""
    return [call(use.first, body.ns, body.spread / 1000.0)]


POLICY: Final = Policy(
    kind="channel",
    about="a server thread does the work, callers wait for its reply",
    lock=lock,
    defaults=LockCosts(acquire_ns=100.0),
    section=section,
    has_server=True,
    priced_as="parking",
)
