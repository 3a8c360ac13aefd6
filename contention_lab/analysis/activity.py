"""What threads did in given spans of time, outside of recorded waits.

Recorded waits tell when a thread was busy; samples tell, of that time, whether it ran or in which
kind of system call it was, and under which stacks. A task is busy whenever it is in no recorded
wait: it runs, or awaits something that is not recorded. It divides no time exactly, it only says
what there was most of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS, coordination_waits, lock_waits
from contention_lab.analysis.thread_samples import thread_samples
from contention_lab.analysis.windows import Windows
from contention_lab.trace import Call, Outcome, State

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.analysis.thread_samples import Samples
    from contention_lab.trace import Trace

    Integers: TypeAlias = npt.NDArray[np.int64]

LONGEST_LOOK_NS: Final = 100_000_000
"""A look at stacks stands for no more than this."""
SAME_LOOK_NS: Final = 500_000
"""Stacks read within this time are of one look."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What threads did while they were busy, as shares of what samples saw.

    Attributes
    ----------
    samples
        How many there are; with none, all shares are 0.
    running
        On a CPU, or waiting for one or for the GIL.
    sleeping
        In `time.sleep`.
    calling
        In another system call: input, output, a child process.
    locked
        On a lock or condition of the C library.
    """

    samples: int
    running: float
    sleeping: float
    calling: float
    locked: float


class Activity:
    """The waits and samples of all threads and tasks, ready to be asked about.

    Parameters
    ----------
    trace
        A trace.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._waiting: dict[int, Windows] = {}

    def life(self, thread: int) -> tuple[int, int]:
        """Return when a thread or task began and ended, in nanoseconds."""
        known = self.trace.thread(thread)
        end = known.end_ns or self.trace.duration_ns
        return min(known.start_ns, LAST_TIME_NS), min(max(end, known.start_ns), LAST_TIME_NS)

    def waiting(self, thread: int) -> Windows:
        """Return when a thread or task was in a recorded wait."""
        if thread not in self._waiting:
            owner, start, end = self._waits
            first, last = np.searchsorted(owner, (thread, thread + 1))
            self._waiting[thread] = Windows.union(start[first:last], end[first:last])
        return self._waiting[thread]

    def leaves_after(self, thread: int, time_ns: int) -> int:
        """Return when a thread, after a moment, had done all it does; late if that is not seen.

        It first waits for another thread to end then, or waits for good.
        """
        owner, start = self._last_waits
        first, last = np.searchsorted(owner, (thread, thread + 1))
        later = start[first:last][start[first:last] >= time_ns]
        return int(later.min(initial=LAST_TIME_NS))

    def busy(self, thread: int, windows: Windows) -> Windows:
        """Return when, within windows, a thread or task lived and was in no recorded wait."""
        return windows.within(*self.life(thread)).without(self.waiting(thread))

    def doing(self, threads: Collection[int], windows: Windows) -> Doing:
        """Return what threads did while busy, within windows."""
        samples = self._samples
        weights = np.zeros(4)
        count = 0
        for thread in threads:
            first, last = np.searchsorted(samples.thread, (thread, thread + 1))
            part = slice(first, last)
            mine = self.busy(thread, windows).contains(samples.time_ns[part])
            state, call = samples.state[part][mine], samples.call[part][mine]
            weight = samples.weight_ns[part][mine]
            count += len(weight)
            blocked = state == State.BLOCKED
            asleep = blocked & ((call == Call.SLEEP) | (call == Call.NATIVE_SLEEP))
            running = (state == State.RUNNABLE) | (state == State.AWAITS_GIL)
            for at, chosen in enumerate(
                (running, asleep, blocked & ~asleep, state == State.AWAITS_LOCK)
            ):
                weights[at] += weight[chosen].sum()
        whole = weights.sum()
        shares = (weights / whole if whole else weights).tolist()
        return Doing(count, *shares)

    def busy_ns(self, thread: int, windows: Windows) -> int:
        """Return how long a thread or task was busy within windows."""
        lived = windows.within(*self.life(thread))
        waited = self.waiting(thread).covered_ns(lived.start_ns, lived.end_ns)
        return lived.total_ns - int(waited.sum())

    def entering_ns(self, thread: int, locks: Collection[int], windows: Windows) -> int:
        """Return how long a thread or task waited, within windows, for one of certain locks."""
        spans = lock_waits(self.trace)
        mine = (spans.thread == thread) & np.isin(spans.lock, list(locks))
        waited = Windows.union(spans.start_ns[mine], spans.end_ns[mine])
        return int(waited.covered_ns(windows.start_ns, windows.end_ns).sum())

    def on_cpu_share(self, thread: int) -> float | None:
        """Return the share of its time wanting a CPU that a thread had one; None if not known."""
        records = self.trace.states
        mine = records[(records["thread"] == thread) & (records["cpu_ns"] > 0)]
        if len(mine) < 2:
            return None
        cpu, delay = (
            float(mine[name].max()) - float(mine[name].min()) for name in ("cpu_ns", "delay_ns")
        )
        return cpu / (cpu + delay) if cpu + delay > 0 else None

    def stacks(
        self, threads: Collection[int], windows: Windows, *, waiting: bool = False
    ) -> dict[int, float]:
        """Return the stacks that threads were seen under within windows, with weights.

        Parameters
        ----------
        threads, windows
            Whose, and when.
        waiting
            Whether recorded waits count, too; else only what is outside of them.

        Returns
        -------
        dict
            Nanoseconds that looks stand for, by stack id.
        """
        time, thread, stack, weight = self._looks
        found: dict[int, float] = {}
        for one in threads:
            first, last = np.searchsorted(thread, (one, one + 1))
            when = windows if waiting else self.busy(one, windows)
            mine = when.contains(time[first:last])
            for number, ns in zip(
                stack[first:last][mine].tolist(), weight[first:last][mine].tolist(), strict=True
            ):
                found[number] = found.get(number, 0.0) + ns
        return found

    @cached_property
    def _samples(self) -> Samples:
        return thread_samples(self.trace)

    @cached_property
    def _coordination(self) -> Spans:
        return coordination_waits(self.trace)

    @cached_property
    def _last_waits(self) -> tuple[Integers, Integers]:
        """Waits for threads to end, and without an end, ordered by thread: whose, and from when."""
        spans = self._coordination
        locks = self.trace.locks.values()
        threads = [lock.id for lock in locks if lock.type.startswith("threading.Thread")]
        is_open = self.trace.wait_columns["outcome"][spans.index] == Outcome.OPEN
        spans = spans.where(is_open | np.isin(spans.lock, threads))
        order = np.lexsort((spans.start_ns, spans.thread))
        return spans.thread[order].astype(np.int64), spans.start_ns[order]

    @cached_property
    def _waits(self) -> tuple[Integers, Integers, Integers]:
        """All recorded waits, ordered by thread: whose, from when, until when."""
        spans = [lock_waits(self.trace), self._coordination]
        outcome = [self.trace.wait_columns["outcome"][part.index] for part in spans]
        tried = np.concatenate(outcome) != Outcome.FAILED_TRY
        owner, start = (
            np.concatenate([getattr(part, name) for part in spans])[tried]
            for name in ("thread", "start_ns")
        )
        # The wait for the GIL that follows is no work either.
        index = np.concatenate([part.index for part in spans])[tried]
        end = np.minimum(self.trace.wait_columns["end_ns"][index], LAST_TIME_NS).astype(np.int64)
        is_open = self.trace.wait_columns["outcome"][index] == Outcome.OPEN
        end = np.where(is_open, np.maximum(end, self.trace.duration_ns), end)
        order = np.argsort(owner, kind="stable")
        return owner[order], start[order], end[order]

    @cached_property
    def _looks(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Samples with stacks, ordered by thread: when, whose, which, and what they stand for."""
        records = self.trace.states[self.trace.states["stack"] != 0]
        time = np.minimum(records["time_ns"], LAST_TIME_NS).astype(np.int64)
        ordered = np.sort(time)
        begins = np.flatnonzero(np.diff(ordered, prepend=-LONGEST_LOOK_NS) > SAME_LOOK_NS)
        period = np.minimum(np.diff(ordered[begins], prepend=0), LONGEST_LOOK_NS)
        look = np.searchsorted(ordered[begins], time, side="right") - 1
        order = np.lexsort((time, records["thread"]))
        thread, stack = (records[name].astype(np.int64) for name in ("thread", "stack"))
        return time[order], thread[order], stack[order], period[look][order]
