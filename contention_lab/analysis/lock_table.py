"""One row per lock: how often it was taken, how long it was waited for and held.

Totals come from counters, which are exact whatever was dropped (in a file that was cut, from the
records if those say more); quantiles come from wait records, and a row says how many are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import places, values
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.trace import HoldFlag, Lock, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Records, Trace


FEW: Final = 64
"""Records of a lock up to which it is faster to sort those of all locks than to look at each."""


@dataclass(frozen=True, slots=True)
class LockRow:
    """What happened to one lock.

    Attributes
    ----------
    lock
        The lock.
    acquires
        Successful attempts.
    contended
        Blocking attempts whose first try failed, with those still waiting at the end.
    timed_out, failed_tries
        Attempts that gave up, and non-blocking ones that found the lock held.
    wait_s
        Waiting for the lock, all threads together, without the GIL, in seconds; waits that were
        still open count until the end of the trace.
    spin_s, park_s, spin_cpu_s
        Of it: in spin loops (wall and CPU time), and asleep in the kernel.
    gil_s
        Waiting for the GIL after the wait for the lock was over.
    hold_s
        Held, in seconds. 0 at level `counters`, which does not time holds.
    utilisation
        `hold_s` over the trace's wall time; above 1 for locks with several holders.
    wait_p50_s, wait_p99_s
        Quantiles of the recorded waits (measured values, not interpolated); 0 if there are none.
    wait_max_s, hold_max_s
        The longest. If wait records are missing, `wait_max_s` includes the time for the GIL.
    threads
        How many threads used it.
    open_waits
        Waits that were still going on at the end.
    missing_waits
        Waits that were counted but not recorded: dropped, or not wanted at level `counters`.
    """

    lock: Lock
    acquires: int
    contended: int
    timed_out: int
    failed_tries: int
    wait_s: float
    spin_s: float
    spin_cpu_s: float
    park_s: float
    gil_s: float
    hold_s: float
    utilisation: float
    wait_p50_s: float
    wait_p99_s: float
    wait_max_s: float
    hold_max_s: float
    threads: int
    open_waits: int
    missing_waits: int

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data; the lock as label, type, site and instance."""
        site = self.lock.site
        row: dict[str, Any] = {
            "lock": self.lock.label,
            "type": self.lock.type,
            "site": site and {"file": site.filename, "line": site.line, "function": site.function},
            "instance": self.lock.instance,
        }
        names = (name for name in self.__slots__ if name != "lock")
        return row | {name: getattr(self, name) for name in names}


def lock_table(trace: Trace) -> tuple[LockRow, ...]:
    """Return a row for every lock that anything was recorded of, the most waited for first."""
    counters, waits, holds = trace.counters, lock_waits(trace), hold_spans(trace)
    ids = np.unique(
        np.concatenate([counters["lock"].astype(np.int64), values(waits.lock), values(holds.lock)])
    )
    outcome = waits.of(trace.wait_columns["outcome"])
    still_waiting = waits.where(outcome == Outcome.OPEN)
    ended = waits.where((outcome != Outcome.OPEN) & (outcome != Outcome.FAILED_TRY))
    attempts = waits.where(outcome != Outcome.FAILED_TRY)
    is_open = (trace.hold_columns["flags"] & int(HoldFlag.OPEN)) != 0
    still_held, released = holds.where(is_open), holds.where(~is_open)
    counted, opened, done, tried, held, freed = (
        _Groups(places(ids, lock), len(ids))
        for lock in (
            counters["lock"],
            *(spans.lock for spans in (still_waiting, ended, attempts, still_held, released)),
        )
    )

    def parts(*names: str) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
        """Yield sums over waits; of a file cut before its counters, as far as recorded."""
        for name, field in zip(names, trace.wait_columns.once(*names), strict=True):
            recorded = done.sum(ended.of(field))
            yield name.replace("_ns", "_s"), np.maximum(counted.sum(counters[name]), recorded)

    open_waits = opened.count()
    contended = np.maximum(counted.sum(counters["contended"]), done.count())
    whole = counted.sum(counters["wait_ns"]) - counted.sum(counters["gil_ns"])
    waited = np.maximum(whole, done.sum(ended.length_ns))
    hold_ns = np.maximum(counted.sum(counters["hold_ns"]), freed.sum(released.length_ns))
    missing = contended - done.count()
    wait_p50, wait_p99, wait_max = tried.quantiles(attempts.length_ns, 0.5, 0.99, 1.0)
    columns = {
        "acquires": counted.sum(counters["acquires"]),
        "contended": contended + open_waits,
        "timed_out": counted.sum(counters["timed_out"]),
        "failed_tries": counted.sum(counters["failed_tries"]),
        "wait_s": waited + opened.sum(still_waiting.length_ns),
        **dict(parts("spin_ns", "spin_cpu_ns", "park_ns", "gil_ns")),
        "hold_s": hold_ns + held.sum(still_held.length_ns),
        "wait_p50_s": wait_p50,
        "wait_p99_s": wait_p99,
        "wait_max_s": np.where(
            missing > 0,
            np.maximum(wait_max, counted.quantiles(counters["max_wait_ns"], 1.0)[0]),
            wait_max,
        ),
        "hold_max_s": np.maximum(
            counted.quantiles(counters["max_hold_ns"], 1.0)[0],
            held.quantiles(still_held.length_ns, 1.0)[0],
        ),
        "threads": _users(ids, counters, still_waiting, still_held),
        "open_waits": open_waits,
        "missing_waits": missing,
    }
    wall_s = max(1, trace.duration_ns) / 1e9
    plain = {
        name: (column / 1e9 if name.endswith("_s") else column.astype(np.int64)).tolist()
        for name, column in columns.items()
    }
    rows = [
        LockRow(
            lock=trace.lock(lock),
            utilisation=plain["hold_s"][i] / wall_s,
            **{name: column[i] for name, column in plain.items()},
        )
        for i, lock in enumerate(ids.tolist())
    ]
    return tuple(sorted(rows, key=lambda row: (-row.wait_s, -row.contended, row.lock.id)))


class _Groups:
    """Records sorted into groups, here: by lock."""

    def __init__(self, group: npt.NDArray[np.integer[Any]], groups: int) -> None:
        self._group = group
        self._groups = groups

    def count(self) -> npt.NDArray[np.intp]:
        """Return the number of records per group."""
        return np.bincount(self._group, minlength=self._groups)

    def sum(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return sums per group; whole numbers stay exact up to 2^53 (104 days in ns)."""
        sums = np.bincount(self._group, weights=values, minlength=self._groups)
        return sums.astype(np.float64)

    def quantiles(self, values: npt.NDArray[Any], *shares: float) -> list[npt.NDArray[np.float64]]:
        """Return, per group, the smallest value that a share does not exceed; 0 if none."""
        counts = self.count()
        some = np.flatnonzero(counts)
        first = np.cumsum(counts) - counts
        wanted = [
            first + np.maximum(0, np.ceil(share * counts).astype(np.intp) - 1) for share in shares
        ]
        if len(values) < FEW * len(some):
            ordered = values[np.lexsort((values, self._group))]
        else:
            ordered = values[np.argsort(self._group, kind="stable")]
            for group in some.tolist():
                begin = first[group]
                part = ordered[begin : begin + counts[group]]
                part.partition(sorted({int(place[group] - begin) for place in wanted}))
        found = np.zeros((len(shares), self._groups))
        for row, place in zip(found, wanted, strict=True):
            row[some] = ordered[place[some]]
        return list(found)


def _users(
    ids: npt.NDArray[np.integer[Any]], counters: Records, *others: Spans
) -> npt.NDArray[np.intp]:
    """Return how many threads used each lock."""
    lock = np.concatenate([counters["lock"].astype(np.int64), *(spans.lock for spans in others)])
    thread = np.concatenate([counters["thread"], *(spans.thread for spans in others)])
    pairs = np.unique(lock << 32 | thread.astype(np.int64))
    return np.bincount(np.searchsorted(ids, pairs >> 32), minlength=len(ids))
