"""What is not known for certain: the host's costs, and which work the next run would bring.

Costs are taken to be off by a factor whose logarithm is normal, one factor for each lock and one
for the scheduler; work is drawn anew from the recorded pieces (the bootstrap of Efron 1979). Both
are drawn once, and used for all remedies and thread counts, so that what they share cancels out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.lock_policy import LockCosts
    from contention_lab.simulate.machine import Machine

MEASURED: Final = 0.2
"""Standard deviation of the logarithm of costs that were measured on the host."""
ASSUMED: Final = 0.6
"""The same of the default costs: a factor of almost two."""


@dataclass(frozen=True, slots=True)
class World:
    """One possible truth.

    Attributes
    ----------
    seed
        Of the work and of the engine's draws.
    calibration
        Its costs.
    """

    seed: int
    calibration: Calibration


def worlds(calibration: Calibration, count: int, seed: int) -> tuple[World, ...]:
    """Return possible truths.

    Parameters
    ----------
    calibration
        What was measured or is assumed.
    count
        How many.
    seed
        The same seed gives the same ones.
    """
    random = np.random.default_rng(seed)
    deviation = ASSUMED if calibration.is_default else MEASURED
    return tuple(
        World(seed + 1 + number, _perturbed(calibration, random, deviation))
        for number in range(count)
    )


def _perturbed(
    calibration: Calibration, random: np.random.Generator, deviation: float
) -> Calibration:
    def factor() -> float:
        return math.exp(deviation * float(random.standard_normal()))

    costs = {kind: _scaled(cost, factor()) for kind, cost in sorted(calibration.costs.items())}
    return replace(calibration, costs=costs, machine=_with_latencies(calibration.machine, factor()))


def _scaled(costs: LockCosts, factor: float) -> LockCosts:
    return replace(
        costs,
        acquire_ns=costs.acquire_ns * factor,
        release_ns=costs.release_ns * factor,
        transfer_ns=costs.transfer_ns * factor,
        handoff_ns=tuple((count, ns * factor) for count, ns in costs.handoff_ns),
        park_ns=costs.park_ns * factor,
        wake_call_ns=costs.wake_call_ns * factor,
        wake_extra_ns=costs.wake_extra_ns * factor,
    )


def _with_latencies(machine: Machine, factor: float) -> Machine:
    return replace(
        machine,
        switch_ns=machine.switch_ns * factor,
        wake_same_ns=machine.wake_same_ns * factor,
        wake_other_ns=machine.wake_other_ns * factor,
    )
