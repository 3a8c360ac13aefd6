"""CPython's global interpreter lock: sleeping waiters, barging, and a forced hand-over.

A thread that waits longer than the switch interval makes the owner give the GIL up, and not take it
again before another has had it (Pitrou 2009); a thread that lets go by itself, around a blocking
call or native code, wakes one, and may have it back before that one runs. That rule is the
engine's; the lock is a parking mutex.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.policies.parking import lock
from contention_lab.simulate.policies.policy import Policy, Use
from contention_lab.simulate.program import Step, compute


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
