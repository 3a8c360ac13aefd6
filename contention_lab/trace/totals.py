"""Counters made from records, as a recorder would have kept them.

For hand-made and imported traces, whose source has no exact counters. Acquires that neither
waited nor left a hold are unknown here, so `acquires` is a lower bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.trace.schema import (
    COUNTER,
    HISTOGRAM_BUCKETS,
    HoldFlag,
    Outcome,
    WaitFlag,
    WaitKind,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace.records import Records


def totals(waits: Records, holds: Records) -> Records:
    """Return `schema.COUNTER` records for every lock and thread, ordered by the two.

    Waits and holds that are still open do not count: a recorder adds them up when they end. Waits
    count as a whole, with the time for the GIL.

    Parameters
    ----------
    waits, holds
        `schema.WAIT` and `schema.HOLD`.
    """
    waits = waits[(waits["outcome"] != Outcome.OPEN) & (waits["kind"] == WaitKind.CONTENTION)]
    begun_pair = _pair(holds["lock"], holds["thread"])
    holds = holds[holds["flags"] & int(HoldFlag.OPEN) == 0]
    wait_pair = _pair(waits["lock"], waits["thread"])
    hold_pair = _pair(holds["lock"], holds["release_thread"])
    pairs = np.unique(np.concatenate([wait_pair, begun_pair, hold_pair]))
    counters = np.zeros(len(pairs), dtype=COUNTER)
    counters["lock"] = pairs >> np.uint64(32)
    counters["thread"] = pairs & np.uint64(0xFFFF_FFFF)
    _add_waits(counters, np.searchsorted(pairs, wait_pair), waits)
    _add_holds(counters, np.searchsorted(pairs, hold_pair), holds)
    begun = np.bincount(np.searchsorted(pairs, begun_pair), minlength=len(pairs))
    counters["acquires"] = np.maximum(counters["acquires"], begun.astype(np.uint64))
    return counters


def _add_waits(counters: Records, at: npt.NDArray[np.intp], waits: Records) -> None:
    blocking = waits["outcome"] != Outcome.FAILED_TRY
    series = waits["flags"] & int(WaitFlag.SERIES) != 0
    for column, outcome in (
        ("acquires", Outcome.ACQUIRED),
        ("timed_out", Outcome.TIMED_OUT),
        ("failed_tries", Outcome.FAILED_TRY),
        ("interrupted", Outcome.INTERRUPTED),
    ):
        np.add.at(counters[column], at, ((waits["outcome"] == outcome) & ~series).astype(np.uint64))
    np.add.at(counters["contended"], at, blocking.astype(np.uint64))
    start, end = waits["start_ns"], waits["end_ns"]
    waited = np.where((blocking | series) & (end >= start), end - start, 0).astype(np.uint64)
    np.add.at(counters["wait_ns"], at, waited)
    np.maximum.at(counters["max_wait_ns"], at, waited)
    for column in ("spin_ns", "park_ns", "gil_ns", "spin_cpu_ns", "spins"):
        np.add.at(counters[column], at, waits[column] * (blocking | series))


def _add_holds(counters: Records, at: npt.NDArray[np.intp], holds: Records) -> None:
    held = np.where(
        holds["end_ns"] >= holds["start_ns"], holds["end_ns"] - holds["start_ns"], 0
    ).astype(np.uint64)
    blocking = holds["flags"] & int(HoldFlag.UNCONTENDED) == 0
    np.add.at(counters["blocking_holds"], at, blocking.astype(np.uint64))
    np.add.at(counters["hold_ns"], at, held)
    np.maximum.at(counters["max_hold_ns"], at, held)
    exponents = np.frexp(np.clip(held, 1, 1 << 32).astype(np.float64))[1] - 1
    buckets = np.minimum(exponents, HISTOGRAM_BUCKETS - 1)
    np.add.at(counters["hold_histogram"], (at, buckets), np.uint64(1))


def _pair(
    lock: npt.NDArray[np.unsignedinteger[Any]], thread: npt.NDArray[np.unsignedinteger[Any]]
) -> npt.NDArray[np.uint64]:
    pair: npt.NDArray[np.uint64] = lock.astype(np.uint64) << np.uint64(32) | thread
    return pair
