"""The work in a trace, to be simulated with other threads, other locks, other cores.

As recorded: every thread goes through its own steps. With another number of threads: the same work,
cut into pieces at moments in which no lock was held, in the recorded order, taken in turn by
whoever is free. That is right for batches of like pieces of work, which is what scales; a program
whose threads each do something of their own can only be simulated as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis import thread_time, working
from contention_lab.simulate.history import History, history
from contention_lab.simulate.packing import Op
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.program import Program
from contention_lab.simulate.time_use import has_gil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.lock_policy import LockPolicy
    from contention_lab.trace import Lock, Trace

PIECES_PER_THREAD: Final = 16
"""Pieces of work for each simulated thread, so that the last ones to finish differ little."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The work of a trace.

    Attributes
    ----------
    histories
        The steps of each thread that worked, by thread.
    locks
        The locks they used, in the order of their ids.
    gil
        The recorded interpreter had a GIL.
    notes
        What the trace does not tell, a sentence each.
    """

    histories: tuple[History, ...]
    locks: tuple[Lock, ...]
    gil: bool
    notes: tuple[str, ...]

    @property
    def work_ns(self) -> float:
        """CPU time of all steps, in ns."""
        return float(
            sum(one.ops["ns"][one.ops["code"] == Op.COMPUTE].sum() for one in self.histories)
        )

    def held_ns(self, lock: int) -> float:
        """Return the time a lock is held by these steps, waits not counted, in ns."""
        return sum(_held_ns(one, lock) for one in self.histories)

    def program(
        self,
        policy_of: Callable[[Lock], LockPolicy],
        *,
        threads: int | None = None,
        gil: LockPolicy | None = None,
    ) -> Program:
        """Return the work as a program.

        Parameters
        ----------
        policy_of
            The policy of each lock.
        threads
            How many threads share the work; None: those that were recorded, each its own.
        gil
            The policy of the GIL; None: Python code runs in parallel.
        """
        program = Program()
        places = {lock.id: program.add_lock(policy_of(lock)) for lock in self.locks}
        if gil is not None:
            program.add_gil(gil)
        table = np.zeros(max(places, default=0) + 1, np.int32)
        table[[*places.keys()]] = [*places.values()]
        if threads is None:
            for one in self.histories:
                item = program.add_item(_placed(one.ops, table))
                program.add_thread(program.add_queue_of(item, item + 1))
            return program
        items = [
            program.add_item(_placed(one.ops[start:stop], table))
            for one, start, stop in self.pieces(threads * PIECES_PER_THREAD)
        ]
        queue = program.add_queue_of(items[0], items[-1] + 1) if items else program.add_queue([])
        for _ in range(threads):
            program.add_thread(queue)
        return program

    def pieces(self, wanted: int) -> Iterator[tuple[History, int, int]]:
        """Yield about `wanted` pieces of work (history, first step, end), as time went by.

        Parameters
        ----------
        wanted
            How many; there are at least one for each history, and no more than its cuts allow.
        """
        total = sum(float(one.ops["ns"].sum()) for one in self.histories) or 1.0
        found = []
        for one in self.histories:
            spent = np.concatenate([[0.0], np.cumsum(one.ops["ns"])])
            count = max(1, round(wanted * spent[-1] / total))
            targets = np.linspace(0.0, spent[-1], count + 1)[1:-1]
            inner = one.cuts[np.searchsorted(spent[one.cuts], targets).clip(0, len(one.cuts) - 1)]
            edges = np.unique(np.concatenate([[0], inner, [len(one.ops)]]))
            for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
                found.append((spent[start] / max(spent[-1], 1.0), one, start, stop))
        found.sort(key=lambda piece: piece[0])
        for _, one, start, stop in found:
            yield one, start, stop


def workload(trace: Trace) -> Workload:
    """Return the work of a trace.

    Parameters
    ----------
    trace
        A recording of level `profile` or `trace`.

    Returns
    -------
    Workload
        The steps of every thread but tasks, and threads that only waited for others.
    """
    chosen = [time.thread.id for time in working(thread_time(trace)) if time.wall_s > 0]
    histories = tuple(history(trace, thread) for thread in chosen)
    used = sorted({int(id_) for one in histories for id_ in np.unique(_targets(one))})
    notes = []
    if any(thread.is_task for thread in trace.threads.values()):
        notes.append("tasks of an event loop are simulated as the thread they run on")
    if not len(trace.states):
        notes.append("nobody sampled what threads did: time off the core counts as waiting for one")
    if has_gil(trace) and not len(trace.gil) and not len(trace.gil_totals):
        notes.append("nobody sampled the GIL: all code counts as Python code")
    return Workload(histories, tuple(trace.lock(id_) for id_ in used), has_gil(trace), tuple(notes))


def recorded_policy(lock: Lock, calibration: Calibration) -> LockPolicy:
    """Return the policy of a lock as it was recorded, by its type.

    Parameters
    ----------
    lock
        The lock.
    calibration
        Costs of the host.
    """
    policy = POLICIES[KIND_OF_TYPE.get(lock.type.rpartition(".")[2], "parking")]
    return policy.lock(calibration.costs_of(policy))


KIND_OF_TYPE: Final = {
    "SpinLock": "test-and-set",
    "TicketLock": "ticket",
    "McsLock": "mcs",
    "AdaptiveMutex": "adaptive",
    "Mutex": "parking",
    "Lock": "parking",
    "RLock": "parking",
}
"""Policies by a lock's type; those not named here are parking mutexes."""


def _placed(ops: NDArray[np.void], table: NDArray[np.int32]) -> NDArray[np.void]:
    """Return steps whose targets are the program's locks instead of the trace's."""
    placed: NDArray[np.void] = ops.copy()
    locks = np.isin(placed["code"], (Op.ACQUIRE, Op.RELEASE))
    placed["target"][locks] = table[placed["target"][locks]]
    return placed


def _targets(one: History) -> NDArray[np.int32]:
    targets: NDArray[np.int32] = one.ops["target"][one.ops["code"] == Op.ACQUIRE]
    return targets


def _held_ns(one: History, lock: int) -> float:
    mine = one.ops["target"] == lock
    sign = (one.ops["code"] == Op.ACQUIRE).astype(np.int64) - (one.ops["code"] == Op.RELEASE)
    depth = np.cumsum(np.where(mine, sign, 0))
    return float(one.ops["ns"][depth > 0].sum())
