"""CPython's global interpreter lock: sleeping waiters, barging, and a forced hand-over.

A thread that waits longer than the switch interval makes the owner give the GIL up, and not take it
again before another has had it (Pitrou 2009); a thread that lets go by itself, around a blocking
call or native code, wakes one, and may have it back before that one runs. That rule is the
engine's; the lock is a parking mutex, each release of which wakes another waiter (`drop_gil`
signals a condition), however many are on their way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.policies import parking
from contention_lab.simulate.policies.policy import Policy, Use
from contention_lab.simulate.program import Step, compute

ALL: Final = 2**30
"""Woken waiters that may be on their way: any number."""


def lock(costs: LockCosts) -> LockPolicy:
    """Return the GIL's behaviour."""
    return replace(parking.lock(costs), wakes_at_once=ALL)


def section(_use: Use, body: Step) -> list[Step]:
    """Run the work as Python code; what comes before and after it is native code."""
    return [compute(body.ns, body.spread / 1000.0, gil=True)]


POLICY: Final = Policy(
    kind="gil",
    about="the GIL: a parking mutex whose waiters force a hand-over after an interval",
    lock=lock,
    defaults=LockCosts(acquire_ns=50.0, release_ns=30.0, handoff_ns=((1.0, 100.0),)),
    section=section,
    is_gil=True,
    priced_as="parking",
)
