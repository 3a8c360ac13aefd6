"""Exact mean value analysis of threads that think and share one lock: the machine repairman.

R(k) = D (1 + Q(k-1)), X(k) = k / (Z + R(k)), Q(k) = X(k) R(k), from Q(0) = 0 (Reiser and Lavenberg
1980). Exact for exponential times of holding and any times of thinking; about a fifth too
pessimistic at the knee where holds are constant, which is why it is shown with the bound as a band.
A hand-off that depends on the number of waiters is exact with the chain in `state_dependent`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class MeanValues:
    """Means of the closed system.

    Attributes
    ----------
    throughput_per_s
        Operations per second, by all threads.
    response_ns
        Time from asking for the lock to having released it, in ns.
    utilisation
        Share of time in which the lock is owned.
    queue
        Mean number of threads that own the lock or wait for it.
    """

    throughput_per_s: float
    response_ns: float
    utilisation: float
    queue: float


def mean_values(
    threads: int, think_ns: float, demand_ns: float, shares: Sequence[float] = (1.0,)
) -> MeanValues:
    """Return the means with a constant mean demand.

    Parameters
    ----------
    threads
        Threads, at least 1.
    think_ns
        Mean time between two operations, in ns.
    demand_ns
        Mean time an operation owns its lock, in ns.
    shares
        Share of the operations that each of several locks gets; one lock by default. Utilisation
        and queue are those of the first.
    """
    queues = [0.0] * len(shares)
    rate = response = 0.0
    for count in range(1, threads + 1):
        stays = [
            share * demand_ns * (1.0 + queue) for share, queue in zip(shares, queues, strict=True)
        ]
        response = sum(stays)
        rate = count / (think_ns + response)
        queues = [rate * stay for stay in stays]
    return MeanValues(rate * 1e9, response, rate * demand_ns * shares[0], queues[0])


def state_dependent(threads: int, think_ns: float, demand_ns: Callable[[int], float]) -> MeanValues:
    """Return the means with a demand that depends on how many threads are at the lock.

    The stationary chain of Boyd-Wickizer et al. (2012): with k threads at the lock, arrivals come
    at the rate (N - k) / Z and services end at the rate 1 / D(k); P(k) is P(0) times the product of
    their quotients. Sums in logarithms, so that 256 threads do not overflow.

    Parameters
    ----------
    threads, think_ns
        As for `mean_values`; `think_ns` must be positive.
    demand_ns
        Mean time an operation owns the lock with k threads there, the owner included.
    """
    if think_ns <= 0:
        raise ValueError("the chain needs a think time; without one every thread is at the lock")
    logs = [0.0]
    for count in range(1, threads + 1):
        arrivals = (threads - count + 1) / think_ns
        logs.append(logs[-1] + math.log(arrivals * demand_ns(count)))
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    total = sum(weights)
    shares = [weight / total for weight in weights]
    rate = sum(share / demand_ns(count) for count, share in enumerate(shares) if count)
    queue = sum(count * share for count, share in enumerate(shares))
    return MeanValues(rate * 1e9, queue / rate, 1.0 - shares[0], queue)
