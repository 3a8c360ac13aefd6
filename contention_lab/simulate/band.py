"""What theory allows a closed system, beside what its simulation found.

Two ends: mean value analysis, exact for exponential holds and a fifth too pessimistic at the knee
for constant ones; and the asymptotic bound, which nothing beats. Both know the hold time and the
cheapest way to acquire, but nothing of hand-offs that grow, wake-ups or preemption: how far below
the band a simulation lies is what the lock itself costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contention_lab.simulate.bounds import ceiling, mean_values

if TYPE_CHECKING:
    from contention_lab.simulate.textbook import ClosedSystem


@dataclass(frozen=True, slots=True)
class Band:
    """A band of throughputs.

    Attributes
    ----------
    low_per_s
        Mean value analysis, capped by the cores; operations per second.
    high_per_s
        The asymptotic bound, in operations per second.
    limited_by
        What sets the bound: "threads", "lock" or "cores".
    knee_threads
        Thread count at which the lock begins to limit.
    """

    low_per_s: float
    high_per_s: float
    limited_by: str
    knee_threads: float

    def to_json(self) -> dict[str, Any]:
        """Return the band by name; no knee is null."""
        knee = self.knee_threads
        return {
            "mean_value_analysis_per_s": self.low_per_s,
            "bound_per_s": self.high_per_s,
            "limited_by": self.limited_by,
            "knee_threads": knee if knee < float("inf") else None,
        }


def band(system: ClosedSystem, threads: int) -> Band:
    """Return the band of a closed system.

    Parameters
    ----------
    system
        Lock, hold and think times, cores.
    threads
        How many threads.
    """
    costs = system.costs
    cheapest = min(costs.acquire_ns, *costs.table(threads))
    demand = system.hold_ns + cheapest
    think = system.think_ns
    shares = system.policy.shares(system.sharing, threads)
    exclusive = system.policy.exclusive_share(system.sharing)
    top = ceiling(
        threads,
        think,
        demand,
        cores=system.machine.cores,
        busiest_share=max(shares) * exclusive,
    )
    mean = mean_values(
        threads,
        think,
        system.hold_ns + costs.acquire_ns + costs.release_ns,
        sorted(shares, reverse=True),
    )
    return Band(
        min(mean.throughput_per_s, top.throughput_per_s),
        top.throughput_per_s,
        top.limited_by,
        top.knee_threads,
    )
