"""Who has the GIL, who wants it, and how long they wait for it.

Where the layer below Python was there, both are measured, thread by thread. Else held time is
sampled, and waiting is measured after waits that are recorded and sampled elsewhere: a
thread that waits for the GIL sleeps and wakes once it has it; so a row of samples in which it
waits is one wait (a return: it comes back from something that had let the GIL go, or had to give
it up after a switch interval). Rows with less than a sample between them are taken for one.

Where holds are recorded, too, a wait counts for as long as somebody has the GIL. Who waits for a
GIL that nobody has is waiting for a core: on a crowded machine that may be most of it. And who
wants the GIL only to try for a lock again is waiting for that lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.activity import Activity
from contention_lab.analysis.distinct import places, values
from contention_lab.analysis.intervals import bounds
from contention_lab.analysis.light_tries import light_tries
from contention_lab.analysis.thread_samples import thread_samples
from contention_lab.analysis.windows import Windows
from contention_lab.trace import GilFlag, Outcome, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from contention_lab.analysis.thread_samples import Samples
    from contention_lab.trace import Thread, Trace

    Integers = npt.NDArray[np.int64]

SWITCH_INTERVAL_S: Final = 0.005
"""CPython's, where the trace does not say."""
SHORT_WAIT: Final = 0.1
"""Share of a switch interval below which a wait for the GIL is no return: it was (nearly) free."""
NEARLY_ALWAYS: Final = 0.8
"""Share of the time that others have the GIL, from which they keep it from who has no core."""
EDGE_NS: Final = 1_000_000
"""What a row of samples may be longer than it looks, at each end."""


@dataclass(frozen=True, slots=True)
class GilThread:
    """One thread and the GIL.

    Attributes
    ----------
    thread
        The thread.
    wall_s
        From its first event to its end.
    held_s
        It had the GIL.
    wait_s
        It waited for it, or for a core to ask for it, while somebody had it, as far as that is
        known, and not to try for a lock.
    core_wait_s
        It waited for it while nobody had it: to be given a core.
    native_s
        It was on a CPU, or waiting for one, without the GIL.
    blocked_s
        It was in a system call, in a lock of the C library, or in a recorded wait.
    returns
        How often it waited for the GIL, for more than a tenth of a switch interval.
    wait_each_s
        How long a return usually waited: the median.
    takings
        How often it got the GIL; 0 where that is not counted.
    on_core_share
        Share of its time with work to do that it had a core: a thread that is taken off its core
        keeps the GIL, and everybody else waiting, without running. 1 where that is not known.
    """

    thread: Thread
    wall_s: float
    held_s: float
    wait_s: float
    core_wait_s: float
    native_s: float
    blocked_s: float
    returns: int
    wait_each_s: float
    takings: int = 0
    on_core_share: float = 1.0

    @property
    def held_each_s(self) -> float:
        """How long it had the GIL between two waits for it, on average."""
        return self.held_s / max(1, self.returns)

    @property
    def ran_each_s(self) -> float:
        """How long it ran each time that it had the GIL, on average."""
        return self.held_s * self.on_core_share / max(1, self.takings or self.returns)


@dataclass(frozen=True, slots=True)
class GilUse:
    """The use of the GIL.

    Attributes
    ----------
    held_share
        Share of the recording during which anybody had it.
    switch_interval_s
        How long a thread may keep it while others want it.
    threads
        Of each thread, the longest holder first.
    sampled
        Whether it is known what threads did meanwhile, and not only who had the GIL.
    exact
        It is made of every wait and hold, as the layer below Python saw them, not of samples.
    """

    held_share: float
    switch_interval_s: float
    threads: tuple[GilThread, ...]
    sampled: bool
    exact: bool


def gil_use(trace: Trace) -> GilUse | None:
    """Return the use of the GIL; None on a build without one, or if nothing saw it."""
    gil = trace.gil
    if len(gil) < 2 and not len(trace.gil_totals):
        return None
    weight = _weights(gil["time_ns"].astype(np.int64), trace.duration_ns)
    taken = gil["flags"] & int(GilFlag.HELD) != 0
    held = _by_thread(gil["holder"][taken], weight[taken])
    held_share = float(weight[taken].sum() / max(1.0, weight.sum()))
    interval = trace.meta.get("switch_interval_s")
    interval_s = float(interval) if isinstance(interval, int | float) else SWITCH_INTERVAL_S
    samples, waits = thread_samples(trace), _RecordedWaits(trace)
    totals = waits.gil_totals
    if totals:
        held = {thread: int(total["held_ns"]) / 1e9 for thread, total in totals.items()}
        held_share = min(1.0, sum(held.values()) * 1e9 / max(1, trace.duration_ns))
    activity = Activity(trace)
    threads = tuple(
        _thread(activity, thread, samples, waits, held.get(thread.id, 0.0), interval_s)
        for thread in trace.threads.values()
        if not thread.is_task
    )
    return GilUse(
        held_share=held_share,
        switch_interval_s=interval_s,
        threads=tuple(sorted(threads, key=lambda one: (-one.held_s, one.thread.id))),
        sampled=bool(len(samples.thread) or totals),
        exact=bool(totals),
    )


def held_share_between(trace: Trace, start_ns: int, end_ns: int) -> float:
    """Return the share of a span of time during which anybody had the GIL; 0 without samples."""
    time = trace.gil["time_ns"].astype(np.int64)
    inside = (time >= start_ns) & (time <= end_ns)
    if np.count_nonzero(inside) < 2:
        return 0.0
    weight = _weights(time, trace.duration_ns)[inside]
    taken = trace.gil["flags"][inside] & int(GilFlag.HELD) != 0
    return float(weight[taken].sum() / max(1.0, weight.sum()))


def _weights(time: Integers, duration_ns: int) -> npt.NDArray[np.float64]:
    """Return the time around each sample: half of that to the one before and the one after."""
    if not len(time):
        return np.zeros(0)
    middles = (time[1:] + time[:-1]) / 2.0
    bounds = np.concatenate([[0.0], middles, [max(float(duration_ns), float(time[-1]))]])
    return np.maximum(0.0, np.diff(bounds))


class _RecordedWaits:
    """What recorded waits say, by thread."""

    def __init__(self, trace: Trace) -> None:
        # During failed tries a thread runs, and is sampled.
        waits = trace.wait_columns
        tried = np.flatnonzero(waits["outcome"] == Outcome.FAILED_TRY)
        start, end, thread, after, before = (
            np.delete(waits[name], tried) if len(tried) else waits[name]
            for name in ("start_ns", "end_ns", "thread", "gil_ns", "gil_before_ns")
        )
        length = np.maximum(0, end.view(np.int64) - start.view(np.int64))
        some = np.flatnonzero((after > 0) | (before > 0))
        gil = np.minimum((after[some] + before[some]).view(np.int64), length[some])
        self.whole_s = _by_thread(thread, length)
        self.gil_s = _by_thread(thread[some], gil)
        events = trace.gil_waits
        self.gil_totals = {int(total["thread"]): total for total in trace.gil_totals}
        self._event_thread = events["thread"]
        start, end = bounds(events)
        counted = end - start
        if len(trace.gil_holds):
            counted = Windows.union(*bounds(trace.gil_holds)).covered_ns(start, end)
        tried = np.zeros(len(start), dtype=np.int64)
        for one, windows in light_tries(trace).items():
            mine = self._event_thread == one
            tried[mine] = windows.covered_ns(start[mine], end[mine])
        counted = np.where(tried > 0, np.minimum(counted, end - start - tried), counted)
        self._event_s = counted / 1e9
        whole_s = _by_thread(self._event_thread, (end - start).astype(np.float64))
        self.counted, self.tried = (
            {one: part_s / whole_s[one] for one, part_s in parts_s.items() if whole_s[one]}
            for parts_s in (
                _by_thread(self._event_thread, part.astype(np.float64)) for part in (counted, tried)
            )
        )
        self._thread, self._gil = thread[some][gil > 0], gil[gil > 0] / 1e9

    def events_s(self, thread: int) -> npt.NDArray[np.float64]:
        """Return how long somebody had the GIL in each wait for it, whatever it came after."""
        found: npt.NDArray[np.float64] = self._event_s[self._event_thread == thread]
        return found

    def returns_s(self, thread: int) -> npt.NDArray[np.float64]:
        """Return how long each wait for the GIL after another wait lasted."""
        found: npt.NDArray[np.float64] = self._gil[self._thread == thread]
        return found


def _thread(
    activity: Activity,
    thread: Thread,
    samples: Samples,
    waits: _RecordedWaits,
    held_s: float,
    interval_s: float,
) -> GilThread:
    end_ns = thread.end_ns or max(activity.trace.duration_ns, thread.start_ns)
    wall_s = max(0, end_ns - thread.start_ns) / 1e9
    recorded_s = min(wall_s, waits.whole_s.get(thread.id, 0.0))
    after_s = min(recorded_s, waits.gil_s.get(thread.id, 0.0))
    mine = slice(*np.searchsorted(samples.thread, [thread.id, thread.id + 1]).tolist())
    state, weight = samples.state[mine], samples.weight_ns[mine]
    whole = float(weight.sum())

    def sampled_s(chosen: npt.NDArray[np.bool_]) -> float:
        return (wall_s - recorded_s) * float(weight[chosen].sum()) / whole if whole else 0.0

    every = np.concatenate([_rows(samples.time_ns[mine], state), waits.returns_s(thread.id)])
    wait_s = sampled_s(state == State.AWAITS_GIL) + after_s
    total, core_wait_s = waits.gil_totals.get(thread.id), 0.0
    if total is not None:
        every, whole_s = waits.events_s(thread.id), min(wall_s, int(total["wait_ns"]) / 1e9)
        wait_s = whole_s * waits.counted.get(thread.id, 1.0)
        core_wait_s = max(0.0, whole_s * (1.0 - waits.tried.get(thread.id, 0.0)) - wait_s)
    every = every[every > SHORT_WAIT * interval_s]
    native_s = sampled_s((state == State.RUNNABLE) & ~samples.has_gil[mine])
    on_core_share = _on_core_share(activity, thread, held_s + native_s)
    others = _others_share(waits.gil_totals, thread, activity.trace.duration_ns)
    if others >= NEARLY_ALWAYS and 0 < thread.cpu_ns <= held_s * 1e9:
        # It ran nothing without the GIL: it was waiting for a core to ask for it, and would have
        # waited for it with one while others had it.
        wait_s += native_s * others
        native_s = 0.0
    return GilThread(
        thread=thread,
        wall_s=wall_s,
        held_s=min(held_s, wall_s),
        wait_s=wait_s,
        core_wait_s=core_wait_s,
        native_s=native_s,
        blocked_s=sampled_s((state == State.BLOCKED) | (state == State.AWAITS_LOCK))
        + recorded_s
        - after_s,
        returns=len(every),
        wait_each_s=float(np.median(every)) if len(every) else 0.0,
        takings=int(total["holds"]) if total is not None else 0,
        on_core_share=on_core_share,
    )


def _others_share(totals: Mapping[int, Any], thread: Thread, duration_ns: int) -> float:
    """Return for what share of the time that a thread has not got the GIL another one has it.

    0 where that is not known.
    """
    if thread.id not in totals:
        return 0.0
    own_ns = int(totals[thread.id]["held_ns"])
    others_ns = sum(int(total["held_ns"]) for total in totals.values()) - own_ns
    return min(1.0, others_ns / max(1, duration_ns - own_ns))


def _on_core_share(activity: Activity, thread: Thread, working_s: float) -> float:
    """Return the share of a thread's working time that it had a core: the larger of two estimates.

    Both are too small. A thread that waits for the GIL wakes every switch interval to ask for it,
    and may wait for a core each time: that is no time in which it kept the GIL from others. And who
    has the GIL need not want a core.
    """
    seen = activity.on_cpu_share(thread.id)
    used = min(1.0, thread.cpu_ns / 1e9 / working_s) if thread.cpu_ns and working_s > 0 else None
    return max((share for share in (seen, used) if share is not None), default=1.0)


def _rows(time: Integers, state: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
    """Return how long each row of samples lasts in which a thread waits, in seconds."""
    waiting = state == State.AWAITS_GIL
    if not waiting.any():
        return np.zeros(0)
    first = np.flatnonzero(waiting & ~np.concatenate([[False], waiting[:-1]]))
    last = np.flatnonzero(waiting & ~np.concatenate([waiting[1:], [False]]))
    before, after = np.maximum(first - 1, 0), np.minimum(last + 1, len(time) - 1)
    # It began and ended between two samples: half of each, at most a millisecond.
    edges = np.minimum(time[first] - time[before], 2 * EDGE_NS) / 2
    edges += np.minimum(time[after] - time[last], 2 * EDGE_NS) / 2
    lengths: npt.NDArray[np.float64] = (time[last] - time[first] + edges) / 1e9
    return lengths


def _by_thread(thread: npt.NDArray[Any], ns: npt.NDArray[np.float64]) -> dict[int, float]:
    ids = values(thread)
    sums = np.bincount(places(ids, thread), weights=ns, minlength=len(ids)) / 1e9
    return dict(zip(ids.tolist(), sums.tolist(), strict=True))
