"""From a trace to cases: the locks that were waited for most, with victims and culprits.

It gathers and adds up; it judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis import HAND_OFF, blame, lock_table, thread_time
from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.parties import culprit_stacks, culprits, holders, victims
from contention_lab.diagnosis.finding import Party
from contention_lab.diagnosis.lock_case import HoldTimes, LockCase, Program, accused
from contention_lab.diagnosis.thresholds import CASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from contention_lab.analysis import LockRow, ThreadTime
    from contention_lab.analysis.intervals import Spans
    from contention_lab.analysis.parties import Parties
    from contention_lab.trace import Frame, Trace

PARTIES = 10
"""Victims and culprits named per lock, at most."""


class CaseFile:
    """A trace, laid out for diagnosis.

    Attributes
    ----------
    trace
        The trace.
    rows
        Its lock table.
    times
        What its threads spent their time on.
    program
        Facts about the whole program.
    cases
        The locks waited for most, by their time, at most `CASES`.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.rows: tuple[LockRow, ...] = lock_table(trace)
        self.times: tuple[ThreadTime, ...] = thread_time(trace, tasks=True)
        self.program = _program(trace, self.rows, self.times)
        self._waits = lock_waits(trace)
        self._holds = hold_spans(trace)
        self._pairs = blame(trace)
        self._victims = victims(trace)
        self._culprits = culprits(trace, self._pairs)
        self._stacks, self._running = culprit_stacks(trace, self._pairs)
        self._holders = holders(trace)
        groups: dict[tuple[Any, ...], list[LockRow]] = defaultdict(list)
        for row in self.rows:
            unnamed = row.lock.id if row.lock.site is None and not row.lock.name else 0
            groups[row.lock.type, row.lock.name, row.lock.site, unnamed].append(row)
        waited = [group for group in groups.values() if any(row.contended for row in group)]
        waited.sort(key=lambda group: -sum(row.wait_s for row in group))
        self.cases = tuple(self._case(group) for group in waited[:CASES])

    def _case(self, rows: Sequence[LockRow]) -> LockCase:
        ids = np.array([row.lock.id for row in rows])
        waits = self._waits.where(np.isin(self._waits.lock, ids))
        of_case = np.isin(self.trace.waits["lock"], ids)[self._pairs.pairs["wait"]]
        pairs = self._pairs.pairs[of_case]
        recorded_s = float(waits.length_ns.sum()) / 1e9
        held = pairs[pairs["hold"] != HAND_OFF]
        blamed_s = float((held["ns"] - held["gil_ns"]).sum()) / 1e9
        gil_s = float(held["gil_ns"].sum()) / 1e9
        waited_s = _union_ns(waits) / 1e9
        blamed = of_case & (self._pairs.pairs["hold"] != HAND_OFF)
        users = self._users(ids)
        return LockCase(
            program=self.program,
            lock=accused(rows[0], len(rows)),
            rows=tuple(rows),
            users=len(users),
            user_wall_s=sum(time.wall_s for time in self.times if time.thread.id in users),
            waiters=recorded_s / waited_s if waited_s else 0.0,
            waited_s=waited_s,
            blamed_share=blamed_s / recorded_s if recorded_s else 1.0,
            gil_share=gil_s / recorded_s if recorded_s else 0.0,
            victims=self._parties(
                self._victims,
                self._victims.which[waits.index],
                self.trace.waits["stack"][waits.index],
                waits.length_ns,
                recorded_s,
            ),
            culprits=self._parties(
                self._culprits,
                self._culprits.which[blamed],
                self._stacks[blamed],
                (self._pairs.pairs["ns"] - self._pairs.pairs["gil_ns"])[blamed],
                recorded_s,
                preferred=self._running[blamed],
            ),
            holds=self._hold_times(ids),
        )

    def _users(self, ids: npt.NDArray[np.int64]) -> set[int]:
        counters = self.trace.counters
        counted = counters["thread"][np.isin(counters["lock"], ids)]
        waiting = self._waits.thread[np.isin(self._waits.lock, ids)]
        return {*np.unique(counted).tolist(), *np.unique(waiting).tolist()}

    def _parties(
        self,
        parties: Parties,
        which: npt.NDArray[np.intp],
        stacks: npt.NDArray[Any],
        ns: npt.NDArray[np.int64],
        whole_s: float,
        preferred: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Party, ...]:
        """Return places with their time and heaviest (preferred) stack, the most time first."""
        totals = np.bincount(which, weights=ns, minlength=len(parties.frames))
        order = [int(i) for i in np.argsort(-totals, kind="stable")[:PARTIES] if totals[i] > 0]
        wanted = np.zeros(len(which), dtype=np.int64) if preferred is None else preferred * 1
        combinations, at = distinct(which, wanted, stacks)
        weights = np.bincount(at, weights=ns, minlength=len(combinations)).tolist()
        heaviest: dict[int, tuple[int, float, int]] = {}
        for (place, choice, stack), weight in zip(combinations, weights, strict=True):
            heaviest[place] = max(heaviest.get(place, (0, 0.0, 0)), (choice, weight, stack))
        return tuple(
            Party(
                parties.frames[i],
                self.trace.stack(heaviest[i][2]),
                float(totals[i]) / 1e9,
                float(totals[i]) / 1e9 / whole_s,
            )
            for i in order
        )

    def _hold_times(self, ids: npt.NDArray[np.int64]) -> dict[Frame | None, HoldTimes]:
        mine = np.isin(self._holds.lock, ids)
        place, length = self._holders.which[mine], self._holds.length_ns[mine] / 1e9
        displaced = self._displaced_s()[mine]
        order = np.argsort(place, kind="stable")
        first = np.flatnonzero(np.diff(place[order], prepend=-1))
        return {
            self._holders.frames[int(place[part[0]])]: HoldTimes(
                len(part),
                float(length[part].sum()),
                float(np.median(length[part])),
                float(displaced[part].sum()),
            )
            for part in np.split(order, first[1:])
            if len(part)
        }

    def _displaced_s(self) -> npt.NDArray[np.float64]:
        """Return how long the holder of each hold was off the CPU, if it was preempted."""
        records = self.trace.holds[self._holds.index]
        measured = (records["cpu_ns"] > 0) & (records["preemptions"] > 0)
        off_ns = self._holds.length_ns - records["cpu_ns"].astype(np.int64)
        return np.where(measured, np.maximum(off_ns, 0), 0) / 1e9


def _program(trace: Trace, rows: Sequence[LockRow], times: Sequence[ThreadTime]) -> Program:
    threads_s = sum(time.cpu_s for time in times)
    measured_s = 0.0 if trace.status is None else int(trace.status["process_cpu_ns"]) / 1e9
    cpu_s = measured_s or threads_s
    spin_s = sum(row.spin_cpu_s for row in rows)
    machine = trace.meta.get("machine")
    cores = machine.get("cores") if isinstance(machine, dict) else None
    return Program(
        wall_s=trace.duration_ns / 1e9,
        cpu_s=cpu_s,
        work_cpu_s=max(0.0, cpu_s - spin_s),
        cores=cores if type(cores) is int and cores > 0 else None,
    )


def _union_ns(spans: Spans) -> int:
    """Return how long at least one of the spans lasted."""
    order = np.argsort(spans.start_ns, kind="stable")
    start, end = spans.start_ns[order], spans.end_ns[order]
    reach = np.maximum.accumulate(end)
    before = np.concatenate([start[:1], reach[:-1]])
    return int(np.maximum(0, end - np.maximum(start, before)).sum())
