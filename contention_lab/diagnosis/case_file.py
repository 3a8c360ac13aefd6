"""From a trace to cases: the locks that were waited for most, with victims and culprits.

It gathers and adds up; it judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis import HAND_OFF, blame, lock_table, thread_time
from contention_lab.analysis.critical_path import CriticalPath, critical_path
from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.parties import culprit_stacks, culprits, holders, victims
from contention_lab.analysis.sites import user_frame
from contention_lab.diagnosis.finding import Party
from contention_lab.diagnosis.lock_case import HoldTimes, LockCase, Program, accused
from contention_lab.diagnosis.thresholds import CASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the program."""
        return critical_path(self.trace)

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
            culprits=self._holding(blamed, recorded_s),
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
    ) -> tuple[Party, ...]:
        """Return places with their time and heaviest stack, the most time first."""
        found = []
        for place, weights in _weighed(which, ns, stacks):
            total_s = sum(weights.values()) / 1e9
            stack = self._heaviest({stack: weight for (stack,), weight in weights.items()})
            found.append(Party(parties.frames[place], stack, total_s, total_s / whole_s))
        return tuple(found)

    def _holding(self, blamed: npt.NDArray[np.bool_], whole_s: float) -> tuple[Party, ...]:
        """Return the places that acquired, with what they were executing while others waited.

        A holder that was seen at the very place where it acquires had only just been given the
        lock: what it does with it, it shows later, and if it is never seen, at its release.
        """
        pairs = self._pairs.pairs[blamed]
        columns = (pairs["hold"] >= 0, self._running[blamed], self._stacks[blamed])
        site = np.zeros(len(pairs), dtype=np.int64)
        site[columns[0]] = self.trace.holds["site"][pairs["hold"][columns[0]]]
        found = []
        ns = pairs["ns"] - pairs["gil_ns"]
        for place, weights in _weighed(self._culprits.which[blamed], ns, *columns[1:], site):
            acquired, total_s = self._culprits.frames[place], sum(weights.values()) / 1e9
            seen: list[dict[int, float]] = [{}, {}, {}]
            for (running, stack, acquire), weight in weights.items():
                how = running * (2 - self._is_at(stack, acquire))
                seen[how][stack] = seen[how].get(stack, 0.0) + weight
            under = self._heaviest(next(filter(None, reversed(seen))))
            executing = user_frame(under) or acquired
            found.append(Party(executing, under, total_s, total_s / whole_s, acquired))
        return tuple(found)

    def _is_at(self, stack: int, frame: int) -> bool:
        """Return whether the innermost user code of a stack is at the line of a frame."""
        return user_frame(self.trace.stack(stack)) == self.trace.frames.get(frame)

    def _heaviest(self, weights: Mapping[int, float]) -> tuple[Frame, ...]:
        """Return the heaviest stack at the heaviest line of the heaviest function."""
        stacks = {stack: self.trace.stack(stack) for stack in weights}
        for level in (_function, user_frame):
            keys: dict[int, object] = {stack: level(frames) for stack, frames in stacks.items()}
            sums: dict[object, float] = defaultdict(float)
            for stack, key in keys.items():
                sums[key] += weights[stack]
            most = max(sums, key=lambda key: sums[key])
            stacks = {stack: stacks[stack] for stack, key in keys.items() if key == most}
        return stacks[max(stacks, key=lambda stack: weights[stack])]

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


def _weighed(
    which: npt.NDArray[np.intp], ns: npt.NDArray[np.int64], *columns: npt.NDArray[Any]
) -> Iterator[tuple[int, dict[tuple[int, ...], float]]]:
    """Yield places with the time under each combination of columns, the most time first."""
    combinations, at = distinct(which, *(column * 1 for column in columns))
    times = np.bincount(at, weights=ns, minlength=len(combinations)).tolist()
    places: dict[int, dict[tuple[int, ...], float]] = defaultdict(dict)
    for (place, *rest), time in zip(combinations, times, strict=True):
        places[place][tuple(rest)] = time
    order = sorted(places.items(), key=lambda item: -sum(item[1].values()))
    return (item for item in order[:PARTIES] if sum(item[1].values()) > 0)


def _function(stack: Sequence[Frame]) -> object:
    """Return the innermost function of user code."""
    frame = user_frame(stack)
    return frame and (frame.filename, frame.function)


def _union_ns(spans: Spans) -> int:
    """Return how long at least one of the spans lasted."""
    order = np.argsort(spans.start_ns, kind="stable")
    start, end = spans.start_ns[order], spans.end_ns[order]
    reach = np.maximum.accumulate(end)
    before = np.concatenate([start[:1], reach[:-1]])
    return int(np.maximum(0, end - np.maximum(start, before)).sum())
