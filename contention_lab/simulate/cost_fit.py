"""From measured throughputs of a lock to its costs.

Spinlocks are read off: where threads queue up, what an operation takes beyond its hold is the
hand-off. Sleeping locks are not that simple, since a release that wakes somebody leaves the lock
free for newcomers until the sleeper runs; their costs are those, out of a small grid of plausible
ones, with which the simulator comes nearest to the measurements. The grid has two dimensions on
purpose: with more, costs that explain the measurements well predict other ratios badly. For the
same reason a prediction should be averaged over the nearest few: measurements cannot tell them
apart.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contention_lab.simulate.engine import simulate
from contention_lab.simulate.packing import Order
from contention_lab.simulate.policies.policy import Sharing, Use
from contention_lab.simulate.program import FINISH, Program, compute

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from contention_lab.simulate.lock_policy import LockCosts
    from contention_lab.simulate.machine import Machine
    from contention_lab.simulate.policies.policy import Policy

QUEUED: Final = 0.7
"""With fewer waiters than this on average, the lock is idle too often to tell a hand-off."""
OWN_RATIO_WEIGHT: Final = 2.0
"""Points with a think time count twice: threads that never think only disturb the lock."""
SPREAD: Final = 0.1
"""Coefficient of variation of simulated times: without any, threads march in step."""
SPIN_NS: Final = (0.0, 300.0, 1e3, 3e3, 10e3)
WAKE_NS: Final = (1e3, 2e3, 4e3, 8e3, 16e3, 32e3)
SLEEP_CALLS: Final = ((1e3, 0.0, 1.5e3, 0.0), (0.0, 0.25, 0.0, 0.25))
"""(park_ns, its share of the wake-up's latency, wake_call_ns, its share): calls that take a fixed
time, or one that goes with the latency, as on hosts where a wake-up is an inter-processor interrupt
that the hypervisor has to deliver."""
NEAREST: Final = 5
"""Costs of a sleeping lock that are taken for equally plausible."""
FEW: Final = 6
"""Thread counts that are simulated for each guess."""
BATCH_NS: Final = 60e3
"""Each simulated thread works about this long: several wake-ups, also without think time."""


class Measured(NamedTuple):
    """One measurement: wall time of a thread for each of its operations, in ns."""

    hold_ns: float
    think_ns: float
    threads: int
    cycle_ns: float


def fitted_costs(policy: Policy, points: Sequence[Measured], machine: Machine) -> LockCosts:
    """Return the costs of a lock: the first of `plausible_costs`, which see."""
    return plausible_costs(policy, points, machine)[0]


def plausible_costs(
    policy: Policy, points: Sequence[Measured], machine: Machine
) -> list[LockCosts]:
    """Return costs of a lock that explain measurements, the best first.

    Parameters
    ----------
    policy
        Its kind.
    points
        Measurements, best at two or more ratios of hold to think time, and with one thread too.
    machine
        Where they were made, with at least as many cores as threads. For locks that sleep, what is
        found of a wake-up comes on top of the machine's.

    Returns
    -------
    list
        For a spinlock one, for a lock that sleeps `NEAREST`.

    Raises
    ------
    ValueError
        If there are no points of one thread, or none of several.
    """
    alone = [point for point in points if point.threads == 1]
    if not alone or len(alone) == len(points):
        raise ValueError("a lock's costs need measurements with one thread, and with several")
    acquire_ns = max(
        1.0, float(np.median([p.cycle_ns - p.hold_ns - p.think_ns for p in _barest(alone)]))
    )
    costs = replace(policy.defaults, acquire_ns=acquire_ns, release_ns=0.0)
    if _sleeps(policy, costs):
        return _nearest(policy, costs, points, machine)
    handoffs = handoff_curve(points)
    if not handoffs:
        return [costs]
    return [replace(costs, transfer_ns=handoffs[0][1], handoff_ns=handoffs)]


def handoff_curve(points: Iterable[Measured]) -> tuple[tuple[float, float], ...]:
    """Return (waiters, hand-off in ns), never falling, from where threads queue up.

    With N threads at a cycle time C, N Z / C of them think (Little's law), one owns the lock, and
    the others wait. The lock is never idle, so that an operation takes C / N, and what is not the
    hold is the hand-off. Ordered by waiters and made monotone by pooling (isotonic regression), so
    that one bad measurement does not make a dent.
    """
    found = []
    for hold_ns, think_ns, threads, cycle_ns in points:
        waiters = threads * (1.0 - think_ns / cycle_ns) - 1.0
        if threads > 1 and waiters > QUEUED:
            weight = OWN_RATIO_WEIGHT if think_ns > 0 else 1.0
            found.append((waiters, max(cycle_ns / threads - hold_ns, 0.0), weight))
    found.sort()
    if not found:
        return ()
    waiters_, values, weights = (np.array(column) for column in zip(*found, strict=True))
    risen = _isotonic(values, weights)
    return tuple(zip(waiters_.tolist(), risen.tolist(), strict=True))


def cycle_ns(
    policy: Policy,
    costs: LockCosts,
    machine: Machine,
    hold_ns: float,
    think_ns: float,
    threads: int,
    operations: int = 0,
) -> float:
    """Simulate what `Measured.cycle_ns` is: threads with equal work, each timed until it is done.

    Where a lock is unfair, this differs from threads over throughput: whoever is favoured is done
    early.

    Parameters
    ----------
    policy, costs, machine
        Lock and host.
    hold_ns, think_ns, threads
        The system.
    operations
        Of each thread; 0: about `BATCH_NS` of work.
    """
    count = operations or int(max(100.0, BATCH_NS / (hold_ns + think_ns + 20.0)))
    program = Program()
    lock = program.add_lock(policy.lock(costs))
    use = Use(lock, 0, Sharing())
    piece = [
        compute(think_ns, SPREAD),
        *policy.section(use, compute(hold_ns, SPREAD)),
        FINISH,
    ]
    item = program.add_item(piece * count)
    for _ in range(threads):
        program.add_thread(program.add_queue_of(item, item + 1))
    found = simulate(program.tables(machine, seed=3, events_limit=10_000_000))
    return float(found.threads["end_ns"].mean()) / count


def _sleeps(policy: Policy, costs: LockCosts) -> bool:
    made = policy.lock(costs)
    return made.order != Order.CHANNEL and made.spin_ns < np.inf and made.backoff_ns[1] == 0.0


def _barest(points: Sequence[Measured]) -> list[Measured]:
    """Return the points with the least work, in which the lock's own time is not lost in noise."""
    least = min(point.hold_ns + point.think_ns for point in points)
    return [point for point in points if point.hold_ns + point.think_ns == least]


def averaged_cycle_ns(
    policy: Policy,
    plausible: Sequence[LockCosts],
    machine: Machine,
    hold_ns: float,
    think_ns: float,
    threads: int,
    operations: int = 0,
) -> float:
    """Return the geometric mean of `cycle_ns` over costs that are equally plausible."""
    cycles = [
        cycle_ns(policy, costs, machine, hold_ns, think_ns, threads, operations)
        for costs in plausible
    ]
    return float(np.exp(np.mean(np.log(cycles))))


def _nearest(
    policy: Policy, costs: LockCosts, points: Sequence[Measured], machine: Machine
) -> list[LockCosts]:
    several = _few([point for point in points if point.threads > 1])
    weights = [OWN_RATIO_WEIGHT if point.think_ns > 0 else 1.0 for point in several]
    judged = []
    for (park, park_share, call, call_share), spin_ns, wake_ns in product(
        SLEEP_CALLS, SPIN_NS, WAKE_NS
    ):
        guess = replace(
            costs,
            spin_ns=spin_ns,
            park_ns=park + park_share * wake_ns,
            wake_call_ns=call + call_share * wake_ns,
            wake_extra_ns=wake_ns,
        )
        errors = [
            abs(
                np.log(
                    cycle_ns(policy, guess, machine, point.hold_ns, point.think_ns, point.threads)
                    / point.cycle_ns
                )
            )
            for point in several
        ]
        judged.append((float(np.average(errors, weights=weights)), guess))
    judged.sort(key=lambda pair: pair[0])
    return [guess for _, guess in judged[:NEAREST]]


def _few(points: Sequence[Measured]) -> list[Measured]:
    """Return points at a few thread counts, evenly on a logarithmic scale."""
    counts = sorted({point.threads for point in points})
    wanted = np.geomspace(counts[0], counts[-1], FEW)
    chosen = {min(counts, key=lambda count: abs(np.log(count / want))) for want in wanted}
    return [point for point in points if point.threads in chosen]


def _isotonic(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the never falling sequence nearest to `values` (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (low, low_weight, low_count), (high, high_weight, high_count) = blocks[-2:]
            total = low_weight + high_weight
            mean = (low * low_weight + high * high_weight) / total
            blocks[-2:] = [(mean, total, low_count + high_count)]
    return np.concatenate([np.full(count, value) for value, _, count in blocks])
