"""From a trace to cases: the locks that were waited for most, with victims and culprits.

It gathers and adds up; it judges nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis import lock_table, thread_time
from contention_lab.analysis.activity import Activity
from contention_lab.analysis.chains import chain
from contention_lab.analysis.charges import charges
from contention_lab.analysis.coordination import CoordinationCase, coordination
from contention_lab.analysis.critical_path import CriticalPath, critical_path, union_ns
from contention_lab.analysis.gil_use import GilUse, gil_use
from contention_lab.analysis.hand_overs import with_signals
from contention_lab.analysis.holding import HeldTime, holding
from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.light_tries import gil_between_tries_ns
from contention_lab.analysis.lock_order import Inversion, inversions
from contention_lab.analysis.native_locks import NativeLockRow, native_locks
from contention_lab.analysis.native_program import completed
from contention_lab.analysis.pools import Pool, pools
from contention_lab.analysis.reader_locks import with_readers
from contention_lab.analysis.stops import stops, without_stops
from contention_lab.analysis.wait_for import Deadlock, deadlocks
from contention_lab.diagnosis.awaited import Awaited
from contention_lab.diagnosis.chain_root import Root, root_of
from contention_lab.diagnosis.errand import Errand, errand
from contention_lab.diagnosis.lock_case import LockCase, Program, accused
from contention_lab.diagnosis.lock_parties import LockParties
from contention_lab.diagnosis.retries import do_that_anyway, sleep_between
from contention_lab.diagnosis.sides import sides
from contention_lab.diagnosis.thresholds import CASES, COORDINATION_CASES, HOLDS_EXAMINED, MOSTLY
from contention_lab.trace import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from contention_lab.analysis import LockRow, ThreadTime
    from contention_lab.analysis.intervals import Spans
    from contention_lab.analysis.windows import Windows
    from contention_lab.diagnosis.finding import AccusedLock
    from contention_lab.trace import Trace


class CaseFile:
    """A trace, laid out for diagnosis.

    Attributes
    ----------
    trace
        The trace, with locks that are used as signals as what they are, and without stops.
    stopped
        When the process was stopped, in the time of the recording.
    rows
        Its lock table.
    times
        What its threads spent their time on.
    program
        Facts about the whole program.
    cases
        The locks waited for most, by their time, at most `CASES`. None at level `counters`, where
        nothing says who held them, nor whether anybody did: what is said of a case accuses.
    """

    def __init__(self, trace: Trace) -> None:
        self.stopped: Windows = stops(trace)
        trace = with_signals(with_readers(completed(without_stops(trace, self.stopped))))
        self.trace = trace
        self.rows: tuple[LockRow, ...] = lock_table(trace)
        self.times: tuple[ThreadTime, ...] = thread_time(trace, tasks=True)
        self.program = _program(trace, self.rows, self.times)
        groups: dict[tuple[Any, ...], list[LockRow]] = defaultdict(list)
        for row in self.rows:
            groups[_identity(row)].append(row)
        waited = [
            group for group in groups.values() if any(row.contended or row.wait_s for row in group)
        ]
        waited.sort(key=lambda group: -sum(row.wait_s for row in group))
        ids = [[row.lock.id for row in group] for group in waited[:CASES]]
        costs = charges(trace, [lock for locks in ids for lock in locks])
        self._parties = LockParties(trace, costs, ids)
        charged = [self._parties.charged_holds(i) for i in range(len(ids))]
        self._charged = [_representative(hold, ns) for hold, ns in charged]
        every = [hold for hold, _ in self._charged]
        self._holding = holding(trace, np.concatenate([np.zeros(0, dtype=np.int64), *every]))
        known = waited[:CASES] if trace.level > Level.COUNTERS else []
        self.cases = tuple(self._case(i, group) for i, group in enumerate(known))

    @cached_property
    def activity(self) -> Activity:
        """What threads did outside of recorded waits."""
        return Activity(self.trace)

    @cached_property
    def coordination(self) -> tuple[CoordinationCase, ...]:
        """Waits for others to do something, by what for, the most waited for first."""
        cases = coordination(self.trace)[:COORDINATION_CASES]
        parts = (side for case in cases for side in sides(self.trace, case))
        return tuple(sorted(parts, key=lambda case: -case.wait_ns))

    @cached_property
    def awaited(self) -> tuple[Awaited, ...]:
        """Whoever is waited for, for each of `coordination`."""
        return tuple(Awaited(self.trace, self.activity, case) for case in self.coordination)

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The pools of worker threads."""
        return pools(self.trace)

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the program."""
        return critical_path(self.trace)

    @cached_property
    def native_locks(self) -> tuple[NativeLockRow, ...]:
        """The locks of native code that threads waited for, the most waited for first."""
        return native_locks(self.trace)

    @cached_property
    def gil(self) -> GilUse | None:
        """Who has the GIL and who wants it; None without one."""
        return gil_use(self.trace)

    def spans(self, number: int) -> tuple[Spans, Spans]:
        """Return the waits for, and the holds of, the locks of a case, by its place in `cases`."""
        return self._parties.waits(number), self._parties.held(number)

    def waits(self, number: int) -> Spans:
        """Return the waits for the locks of a case, by its place in `cases`."""
        return self._parties.waits(number)

    def charged(self, number: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return holds that stand for all of a case's lock, and what each cost others, in ns."""
        return self._charged[number]

    def _held(self, number: int) -> HeldTime:
        return self._holding.of(*self._charged[number])

    @cached_property
    def deadlocks(self) -> tuple[Deadlock, ...]:
        """Deadlocks that happened, by their beginning."""
        return deadlocks(self.trace)

    @cached_property
    def order(self) -> tuple[Inversion, ...]:
        """Orders of taking locks that contradict each other."""
        return inversions(self.trace)

    @cached_property
    def locks(self) -> dict[int, AccusedLock]:
        """What to call each lock, by its id; the ends of threads are no locks."""
        count = Counter(map(_identity, self.rows))
        return {
            row.lock.id: accused(row, count[_identity(row)])
            for row in self.rows
            if not row.lock.type.startswith("threading.Thread")
        }

    @cached_property
    def _ids(self) -> dict[AccusedLock, list[int]]:
        ids: dict[AccusedLock, list[int]] = defaultdict(list)
        for lock, known in self.locks.items():
            ids[known].append(lock)
        return ids

    def first_made(self, lock: AccusedLock) -> int:
        """Return the lowest id of the locks that are meant: they grow with the time of making."""
        return min(self._ids[lock])

    def path_share(self, locks: Iterable[AccusedLock]) -> float:
        """Return the share of the wall time that the critical path waits for certain locks."""
        return self.path.share({number for lock in locks for number in self._ids[lock]})

    def _case(self, number: int, rows: Sequence[LockRow]) -> LockCase:
        waits = self._parties.waits(number)
        charged_ns, gil_ns = self._parties.charged_ns(number)
        recorded_ns, waited_ns = int(waits.length_ns.sum()), union_ns(waits.start_ns, waits.end_ns)
        ids = [row.lock.id for row in rows]
        users = self._users(np.array(ids), waits)
        held = self._held(number)
        gil_share = gil_ns / recorded_ns if recorded_ns else 0.0
        blamed_share = (charged_ns - gil_ns) / recorded_ns if recorded_ns else 1.0
        tried = _is_mostly_tried(rows)
        if tried:
            held_share = _held_by_others(rows, self.program.wall_s)
            blamed_share = max(blamed_share, min(held_share, 1.0 - gil_share))
        return LockCase(
            program=self.program,
            lock=accused(rows[0], len(rows)),
            rows=tuple(rows),
            users=len(users),
            user_wall_s=sum(time.wall_s for time in self.times if time.thread.id in users),
            waiters=recorded_ns / waited_ns if waited_ns else 0.0,
            waited_s=waited_ns / 1e9,
            blamed_share=blamed_share,
            gil_share=gil_share,
            victims=self._parties.victims(number),
            culprits=self._parties.culprits(number),
            holds=self._parties.hold_times(number),
            held=held,
            in_libraries_share=self._parties.in_libraries_share(number),
            root=self._root(rows),
            errand=self._errand(number, held, recorded_ns / 1e9),
            gil_to_try_s=gil_between_tries_ns(self.trace, ids) / 1e9,
            naps_between_tries=tried and self._nap(ids),
        )

    def _nap(self, locks: Sequence[int]) -> bool:
        """Tell whether threads sleep between failed tries, and only then."""
        return sleep_between(self.trace, self.activity, locks) and not do_that_anyway(
            self.trace, self.activity, locks
        )

    def _errand(self, number: int, held: HeldTime, waited_s: float) -> Errand | None:
        share = held.parts["others"] / held.total_s if held.total_s else 0.0
        if share < MOSTLY:
            return None
        charged = self._charged[number][0]
        holds = hold_spans(self.trace).where(np.sort(charged))
        return errand(self.trace, self.activity, holds, share, waited_s)

    def _root(self, rows: Sequence[LockRow]) -> Root | None:
        steps = chain(self.trace, [row.lock.id for row in rows], self._parties.spans)
        return root_of(self.trace, steps, self.locks) if steps else None

    def _users(self, ids: npt.NDArray[np.int64], waits: Spans) -> set[int]:
        counters = self.trace.counters
        counted = counters["thread"][np.isin(counters["lock"], ids)]
        return {*np.unique(counted).tolist(), *np.unique(waits.thread).tolist()}


def _identity(row: LockRow) -> tuple[Any, ...]:
    """Return by what a lock is the same as another one: type, name and where it was made."""
    return row.lock.type, row.lock.label, row.lock.site


def _is_mostly_tried(rows: Sequence[LockRow]) -> bool:
    return sum(row.failed_tries for row in rows) > sum(row.contended for row in rows)


def _held_by_others(rows: Sequence[LockRow], wall_s: float) -> float:
    """Return for what share of a user's time, on average, another one held its lock.

    From all holds: of those between tries only the ones that a try met are recorded one by one.
    """
    waited_s = held_s = 0.0
    for row in rows:
        others_s = row.hold_s * (row.threads - 1) / row.threads if row.threads else 0.0
        own_s = row.hold_s - others_s
        if wall_s > own_s:
            waited_s += row.wait_s
            held_s += row.wait_s * min(1.0, others_s / (wall_s - own_s))
    return held_s / waited_s if waited_s else 0.0


def _representative(
    hold: npt.NDArray[np.int32], ns: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return holds that stand for all of a lock, with their cost: the costliest and some others."""
    if len(hold) <= HOLDS_EXAMINED:
        return hold, ns.astype(np.float64)
    half = HOLDS_EXAMINED // 2
    order = np.argpartition(-ns, half)
    costly, rest = order[:half], np.sort(order[half:])
    some = rest[:: -(-len(rest) // half)]
    scale = ns[rest].sum() / max(1, ns[some].sum())
    weights = np.concatenate([ns[costly].astype(np.float64), ns[some] * scale])
    return np.concatenate([hold[costly], hold[some]]), weights


def _program(trace: Trace, rows: Sequence[LockRow], times: Sequence[ThreadTime]) -> Program:
    threads_s = sum(time.cpu_s for time in times)
    measured_s = 0.0 if trace.status is None else int(trace.status["process_cpu_ns"]) / 1e9
    cpu_s = measured_s or threads_s
    spin_s = sum(row.spin_cpu_s for row in rows)
    return Program(
        wall_s=trace.duration_ns / 1e9,
        cpu_s=cpu_s,
        work_cpu_s=max(0.0, cpu_s - spin_s),
        cores=trace.cores,
    )
