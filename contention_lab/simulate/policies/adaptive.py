"""Adaptive mutex: waiters spin while the holder is on a core, then sleep.

Spinning is worth while only if the holder can finish meanwhile: once it has lost its core, all its
spinners sleep at once, and give their cores away. `costs.spin_ns` bounds their patience.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Policy

PATIENCE_NS: Final = 100_000.0
"""How long to spin at most where no `spin_ns` was measured."""


def lock(costs: LockCosts) -> LockPolicy:
    """Return the lock's behaviour."""
    patience = costs.spin_ns if costs.spin_ns > 0 else PATIENCE_NS
    return LockPolicy(Order.COMPETITIVE, costs, spin_ns=patience, adaptive=True)


POLICY: Final = Policy(
    kind="adaptive",
    about="mutex: waiters spin while the holder runs, then sleep",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0), (16.0, 600.0))),
)
