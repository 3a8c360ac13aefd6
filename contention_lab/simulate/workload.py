"""The work in a trace, to be simulated with other threads, other locks, other cores.

As recorded: every thread goes through its own steps. With another number of threads: the same work,
cut into pieces at moments in which no lock was held, in the recorded order, taken in turn by
whoever is free. That is right for batches of like pieces of work, which is what scales; a program
whose threads each do something of their own can only be simulated as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis import thread_time, working
from contention_lab.simulate.history import History, history
from contention_lab.simulate.packing import Op
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.program import NO_OPS, Program
from contention_lab.simulate.retaken import GIL_FIRST
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
    steps
        OPS records of all of them, one after the other; targets are places in `locks`.
    starts
        Where in `steps` each history begins, and the end.
    gil
        The recorded interpreter had a GIL.
    notes
        What the trace does not tell, a sentence each.
    """

    histories: tuple[History, ...]
    locks: tuple[Lock, ...]
    steps: NDArray[np.void]
    starts: tuple[int, ...]
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
        for lock in self.locks:
            program.add_lock(policy_of(lock))
        if gil is not None:
            program.add_gil(gil)
        program.add_ops(self.steps)
        if threads is None:
            for start, stop in pairwise(self.starts):
                item = program.add_range(start, stop)
                program.add_thread(program.add_queue_of(item, item + 1))
            return program
        pieces = [*self.pieces(threads * PIECES_PER_THREAD)]
        for which, start, stop in pieces:
            program.add_range(self.starts[which] + start, self.starts[which] + stop)
        queue = program.add_queue_of(0, len(pieces))
        for _ in range(threads):
            program.add_thread(queue)
        return program

    def pieces(self, wanted: int) -> Iterator[tuple[int, int, int]]:
        """Yield about `wanted` pieces of work (which history, first step, end), as time went by.

        Parameters
        ----------
        wanted
            How many; there are at least one for each history, and no more than its cuts allow.
        """
        total = sum(float(one.spent_ns[-1]) for one in self.histories) or 1.0
        found = []
        for which, one in enumerate(self.histories):
            whole = float(one.spent_ns[-1])
            count = max(1, round(wanted * whole / total))
            targets = np.linspace(0.0, whole, count + 1)[1:-1]
            inner = one.cuts[np.searchsorted(one.spent_ns, targets).clip(0, len(one.cuts) - 1)]
            edges = np.unique(np.concatenate([[0], inner, [len(one.ops)]]))
            at = np.interp(edges, one.cuts, one.spent_ns) / max(whole, 1.0)
            for place, (start, stop) in enumerate(pairwise(edges.tolist())):
                found.append((float(at[place]), which, start, stop))
        found.sort()
        for _, which, start, stop in found:
            yield which, start, stop


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
    locks = tuple(trace.lock(id_) for id_ in used)
    return workload_of(histories, locks, gil=has_gil(trace), notes=tuple(notes))


def workload_of(
    histories: tuple[History, ...],
    locks: tuple[Lock, ...],
    *,
    gil: bool,
    notes: tuple[str, ...] = (),
) -> Workload:
    """Return a workload of given steps, recorded or changed as a remedy would change them.

    Parameters
    ----------
    histories
        The steps of each thread; their targets are ids of locks.
    locks
        All locks these use.
    gil, notes
        As in `Workload`.
    """
    table = np.zeros(max((lock.id for lock in locks), default=0) + 1, np.int32)
    table[[lock.id for lock in locks]] = np.arange(len(locks))
    steps = np.concatenate([*(one.ops for one in histories), NO_OPS])
    uses_lock = (steps["code"] == Op.ACQUIRE) | (steps["code"] == Op.RELEASE)
    steps["target"] = np.where(uses_lock, table[steps["target"]], 0)
    starts = np.cumsum([0, *(len(one.ops) for one in histories)]).tolist()
    return Workload(histories, locks, steps, tuple(starts), gil, notes)


def recorded_policy(lock: Lock, calibration: Calibration) -> LockPolicy:
    """Return the policy of a lock as it was recorded, by its type.

    Parameters
    ----------
    lock
        The lock.
    calibration
        Costs of the host.
    """
    kind = kind_of_type(lock.type)
    policy = POLICIES[kind].lock(calibration.costs_of(POLICIES[kind]))
    return replace(policy, gil_first=True) if lock.type in GIL_FIRST else policy


def kind_of_type(lock_type: str) -> str:
    """Return the kind of policy of a lock, by its type."""
    return KIND_OF_TYPE.get(lock_type.rpartition(".")[2], "parking")


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


def _targets(one: History) -> NDArray[np.int32]:
    targets: NDArray[np.int32] = one.ops["target"][one.ops["code"] == Op.ACQUIRE]
    return targets


def _held_ns(one: History, lock: int) -> float:
    mine = one.ops["target"] == lock
    sign = (one.ops["code"] == Op.ACQUIRE).astype(np.int64) - (one.ops["code"] == Op.RELEASE)
    depth = np.cumsum(np.where(mine, sign, 0))
    return float(one.ops["ns"][depth > 0].sum())
