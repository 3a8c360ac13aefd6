"""What no run of a batch can beat, and what exact mean value analysis expects of it.

T >= the time a lock is held in all (each shard or permit its share of it), the time the GIL is
needed, CPU time over cores, all time over threads, the longest stretch that cannot be divided
(Denning and Buzen 1978). Mean value analysis (Reiser and Lavenberg 1980) takes holds as exponential
and locks as handed over for nothing; with the bound it makes a band in which locks with little
overhead lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.sections import pairs
from contention_lab.simulate.bounds import mean_values
from contention_lab.simulate.packing import Op, OpFlag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.history import History

STATIONS: Final = 8
"""Locks of the analysis: those held longest. The others hardly queue."""
GIL: Final = 0
"""The GIL among the ids of locks."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds on the time of a batch.

    Attributes
    ----------
    least_ns
        It takes at least so long.
    set_by
        "lock", "gil", "cores", "threads" or "stretch" (the longest that cannot be divided).
    lock
        The id of the lock that sets it; None if it is none.
    mean_value_ns
        What mean value analysis says, at least `least_ns`.
    """

    least_ns: float
    set_by: str
    lock: int | None
    mean_value_ns: float


@dataclass(frozen=True, slots=True)
class Demand:
    """What a batch needs in all, in ns.

    Attributes
    ----------
    cpu, own, gil
        CPU time; all time of the crew but waiting; time that needs the GIL.
    longest
        The longest stretch of the crew that cannot be divided.
    held
        Time that each lock is held, by id; of one that is chosen among several, its share; of a
        semaphore, divided by its permits.
    acquires
        Acquires of these locks by the crew, and requests.
    """

    cpu: float
    own: float
    gil: float
    longest: float
    held: Mapping[int, float]
    acquires: int


def demand_of(batch: Batch) -> Demand:
    """Return what a batch needs."""
    held: dict[int, float] = {}
    cpu = gil = 0.0
    acquires = 0
    for number, one in enumerate((*batch.crew, *batch.others)):
        ops = one.ops
        compute = ops["code"] == Op.COMPUTE
        cpu += float(ops["ns"][compute].sum())
        gil += float(ops["ns"][compute & ((ops["flags"] & int(OpFlag.GIL)) != 0)].sum())
        count = _add_held(held, one)
        acquires += count if number < len(batch.crew) else 0
    served = sum(_served(one, held) for one in batch.crew)
    gil += sum(held.get(id_, 0.0) for id_, needs_gil in batch.servers if needs_gil)
    scale = batch.scale
    longest = max((float(np.diff(one.spent_ns).max(initial=0.0)) for one in batch.crew), default=0)
    return Demand(
        (cpu + served) * scale,
        batch.work_ns,
        gil * scale,
        longest,
        {id_: ns * scale / _permits(batch, id_) for id_, ns in held.items()},
        max(1, round(acquires * scale)),
    )


def _permits(batch: Batch, id_: int) -> int:
    return batch.kinds[id_].permits if id_ in batch.kinds else 1


def limit_of(batch: Batch, threads: int, cores: int, *, gil: bool = True) -> Limit:
    """Return the bounds of a batch.

    Parameters
    ----------
    batch
        The work.
    threads
        How many threads share the crew's work.
    cores
        Cores of the machine.
    gil
        Whether there is a GIL, for work that was recorded with one.
    """
    return limit_from(demand_of(batch), threads, cores, gil=gil and batch.gil)


def limit_from(demand: Demand, threads: int, cores: int, *, gil: bool) -> Limit:
    """Return the bounds of what is known of a batch; parameters as for `limit_of`."""
    lock = max(demand.held, key=lambda id_: demand.held[id_], default=None)
    times = {
        "threads": demand.own / threads,
        "cores": demand.cpu / cores,
        "stretch": demand.longest,
        "gil": demand.gil if gil else 0.0,
        "lock": demand.held[lock] if lock is not None else 0.0,
    }
    name = max(times, key=lambda which: times[which])
    least = times[name]
    return Limit(
        least,
        name,
        lock if name == "lock" else GIL if name == "gil" else None,
        max(least, _mean_value_ns(demand, threads)),
    )


def _mean_value_ns(demand: Demand, threads: int) -> float:
    busiest = sorted(demand.held.values(), reverse=True)[:STATIONS]
    queued = sum(busiest)
    if queued <= 0.0:
        return demand.own / threads
    each = demand.acquires
    think = max(0.0, demand.own - queued) / each
    found = mean_values(threads, think, queued / each, [ns / queued for ns in busiest])
    return each / found.throughput_per_s * 1e9


def _add_held(held: dict[int, float], one: History) -> int:
    """Add the time that a thread holds each lock; return its acquires and requests."""
    ops = one.ops
    acquire, release = pairs(ops)
    until = np.concatenate([[0.0], np.cumsum(ops["ns"] * (ops["code"] <= Op.SLEEP))])
    shard = (ops["flags"][acquire] & int(OpFlag.SHARD)) != 0
    share = np.where(shard, ops["spread"][acquire] / 1000.0, 1.0)
    length = (until[release] - until[acquire]) * share
    targets, which = np.unique(ops["target"][acquire], return_inverse=True)
    for id_, ns in zip(targets.tolist(), np.bincount(which, weights=length), strict=True):
        held[id_] = held.get(id_, 0.0) + float(ns)
    return len(acquire) + int(np.count_nonzero(ops["code"] == Op.CALL))


def _served(one: History, held: dict[int, float]) -> float:
    """Add what a thread has channels do to their time; return it."""
    ops = one.ops
    sent = ops[(ops["code"] == Op.CALL) | (ops["code"] == Op.POST)]
    targets, which = np.unique(sent["target"], return_inverse=True)
    for id_, ns in zip(targets.tolist(), np.bincount(which, weights=sent["ns"]), strict=True):
        held[id_] = held.get(id_, 0.0) + float(ns)
    return float(sent["ns"].sum())
