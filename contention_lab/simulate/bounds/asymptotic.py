"""The asymptotic bound: a lock is held by one thread at a time, and a core runs one at a time.

X <= min(N / (Z + D), 1 / D, C / (Z + D)): N threads without any waiting; a lock that is never free;
C cores that are never idle (Denning and Buzen 1978; Lazowska et al. 1984, chapter 5). With several
locks, D is the largest demand, and for k locks of which the most used gets the share p it is p D.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A bound on throughput.

    Attributes
    ----------
    throughput_per_s
        No more operations per second than this.
    limited_by
        "threads", "lock" or "cores".
    knee_threads
        The thread count at which the lock begins to limit: (Z + D) / D; infinite without a lock.
    """

    throughput_per_s: float
    limited_by: str
    knee_threads: float


def ceiling(
    threads: int,
    think_ns: float,
    demand_ns: float,
    *,
    cores: int | None = None,
    busiest_share: float = 1.0,
) -> Ceiling:
    """Return the bound.

    Parameters
    ----------
    threads
        Threads N.
    think_ns
        Time Z a thread spends between two operations, in ns.
    demand_ns
        Time D an operation needs the lock, its hand-off included, in ns.
    cores
        Cores that thinking and holding threads need one each of; None: enough.
    busiest_share
        Share p of the operations that need the most used lock.
    """
    cycle = think_ns + demand_ns
    if cycle <= 0:
        raise ValueError("an operation has to take some time")
    held = busiest_share * demand_ns
    rates = {"threads": threads / cycle}
    if held > 0:
        rates["lock"] = 1.0 / held
    if cores is not None:
        rates["cores"] = cores / cycle
    name = min(rates, key=lambda which: rates[which])
    return Ceiling(rates[name] * 1e9, name, cycle / held if held > 0 else float("inf"))
