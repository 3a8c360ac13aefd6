"""The critical path: which waits the end of the program depended on.

Walked backwards from the end. A thread that waited could go on because another one released the
lock, notified, put the item or ended, so before that moment it is the other thread that counts,
and so on to the beginning. At every moment exactly one thread is on the path; the waits it comes
through are the times that the program would have been shorter without them, as far as nothing
else had to be waited for then. Waiting that is not on the path cost the program nothing.

A wait that nobody ended (a timeout, a signal, a waker that was not recorded) is on the path
itself: it goes on with the same thread, before the wait.

What follows which wait is found for all waits at once; the walk is one look-up for each wait on
the path. Of a recording with more than half a million waits it is walked through the last ones,
and shares are those of that time.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS, bounded
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.path_actors import Actors
from contention_lab.analysis.path_stretches import Stretches, stretches
from contention_lab.trace import HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

MOST_WAITS: Final = 500_000
"""Waits the path is walked through, the last ones to end: half a second's work. A longer way back
changes shares little."""
ASLEEP: Final = 0.5
"""A main thread that used less CPU than this share of the time after its last wait, and that time
is more than this share of the program, only slept until the end: then the path begins with the
thread whose wait ended last."""


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """The waits on the critical path, the latest first.

    Attributes
    ----------
    wall_ns
        Length of the recording, or of the part of it that the path was walked through.
    wait
        Positions in `trace.waits`.
    hold
        For each the position in `trace.holds` of the hold whose release ended it, -1 for none.
    lock, start_ns, end_ns
        What was waited for, and when; without the GIL.
    return_ns
        When the waiter went on: after `end_ns` it waited for the GIL.
    held_ns
        Since when that hold lasted, within the wait.
    is_coordination
        It was for an event, an item or a thread.
    is_followed
        The path goes on with whoever ended the wait.
    idle_ns
        How long the main thread, and the tasks on it, neither used a CPU nor waited for anything
        recorded: it slept, or waited for the world outside.
    running
        With whom the path was when, outside of recorded waits.
    """

    wall_ns: int
    wait: Integers
    hold: Integers
    lock: Integers
    start_ns: Integers
    end_ns: Integers
    return_ns: Integers
    held_ns: Integers
    is_coordination: Mask
    is_followed: Mask
    idle_ns: int
    running: Stretches

    def share(self, locks: Collection[int], *, coordination: bool = False) -> float:
        """Return the share of the program's wall time that the path waits for locks.

        Parameters
        ----------
        locks
            Ids. Time that the path waits for several of them counts once.
        coordination
            Whether to look at waits for events, items and threads instead.
        """
        return self._share(self._of(locks, coordination), self.start_ns, self.end_ns)

    def hold_share(self, locks: Collection[int], holds: Mask) -> float:
        """Return the share of the wall time that the path is in certain holds of locks.

        Parameters
        ----------
        locks
            Ids.
        holds
            Which holds, by position in `trace.holds`: those of a culprit.
        """
        chosen = self._of(locks, False) & (self.hold >= 0)
        chosen[chosen] = holds[self.hold[chosen]]
        return self._share(chosen, self.held_ns, self.end_ns)

    @property
    def coordination_share(self) -> float:
        """Share of the wall time that the path waits for events, items or threads."""
        return self._share(self.is_coordination, self.start_ns, self.end_ns)

    @property
    def unexplained_share(self) -> float:
        """Share of the wall time in waits that nobody is known to have ended."""
        return self._share(~self.is_followed, self.start_ns, self.end_ns)

    @property
    def is_telling(self) -> bool:
        """Whether the program ended since work was done, as far as one can tell.

        Else a clock ended it: the main thread slept for most of the time, or waited for something
        that nobody did until it gave up. Then what is not on the path may cost as much.
        """
        timed = self.is_coordination & ~self.is_followed
        timed_ns = union_ns(self.start_ns[timed], self.end_ns[timed])
        return self.idle_ns + timed_ns <= ASLEEP * self.wall_ns

    @property
    def gil_share(self) -> float:
        """Share of the wall time that the path waits for the GIL after it got a lock."""
        return self._share(~self.is_coordination, self.end_ns, self.return_ns)

    def _of(self, locks: Collection[int], coordination: bool) -> Mask:
        wanted: Mask = np.isin(self.lock, np.fromiter(locks, dtype=np.int64))
        wanted &= self.is_coordination == coordination
        return wanted

    def _share(self, chosen: Mask, start: Integers, end: Integers) -> float:
        if not self.wall_ns:
            return 0.0
        return min(1.0, union_ns(start[chosen], end[chosen]) / self.wall_ns)


def union_ns(start: Integers, end: Integers) -> int:
    """Return how long at least one of the spans lasted."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    before = np.concatenate([start[:1], reach[:-1]])
    return int(np.maximum(0, end - np.maximum(start, before)).sum())


def critical_path(trace: Trace) -> CriticalPath:
    """Return the critical path of a trace.

    The path begins with the main thread, which ends last; or, if that only slept until the end,
    with the thread whose wait ended last.
    """
    table = _Table(trace)
    follows = array("i", table.follows().tobytes())
    at, runner = table.begin()
    path = array("i")
    while at >= 0:
        path.append(at)
        at = follows[at]
    on_path = np.frombuffer(path, dtype=np.intc)
    hold = table.hold[on_path].astype(np.int64)
    start, end = table.start[on_path], table.got[on_path]
    held = start.copy()
    of_hold = trace.hold_columns["start_ns"][hold[hold >= 0]]
    of_hold = np.minimum(of_hold, LAST_TIME_NS).astype(np.int64)
    held[hold >= 0] = np.clip(of_hold, start[hold >= 0], end[hold >= 0])
    return CriticalPath(
        wall_ns=trace.duration_ns - table.begin_ns,
        wait=table.index[on_path],
        hold=hold,
        lock=table.lock[on_path].astype(np.int64),
        start_ns=start,
        end_ns=end,
        return_ns=table.back[on_path],
        held_ns=held,
        is_coordination=table.is_coordination[on_path],
        is_followed=table.is_followed[on_path],
        idle_ns=table.idle_ns(),
        running=table.running(on_path, runner),
    )


class _Table:
    """All waits that took time, in the order in which they ended.

    Attributes
    ----------
    begin_ns
        From when on: 0 unless there are too many.
    index
        Position in `trace.waits`.
    start, got, back
        When it began, the lock was had, the waiter went on.
    actor, lock
        Ids.
    hold
        Position of the hold whose release ended it, -1 for none.
    is_followed
        Somebody is known to have ended it.
    """

    def __init__(self, trace: Trace) -> None:
        waits = trace.wait_columns
        index = np.flatnonzero(waits["outcome"] != Outcome.FAILED_TRY)
        self.begin_ns = 0
        if len(index) > MOST_WAITS:
            is_open = waits["outcome"][index] == Outcome.OPEN
            ends = np.where(is_open, trace.duration_ns, waits["end_ns"][index])
            last = np.partition(ends, len(index) - MOST_WAITS)[len(index) - MOST_WAITS]
            self.begin_ns = min(int(last), trace.duration_ns)
            index = index[ends > last]
        waits = waits[index]
        start, back = bounded(waits["start_ns"]), bounded(waits["end_ns"])
        start = np.maximum(start, self.begin_ns)
        is_open = waits["outcome"] == Outcome.OPEN
        back = np.where(is_open, np.maximum(back, trace.duration_ns), back)
        order = np.flatnonzero(back > start)
        order = order[np.argsort(back[order], kind="stable")]
        index, waits = index[order], waits[order]
        self._trace = trace
        self.index = index
        self.start, self.back = start[order], back[order]
        self.got = np.maximum(self.start, self.back - bounded(waits["gil_ns"]))
        self.actor, self.lock = waits["thread"], waits["lock"]
        self.is_coordination = waits["kind"] == WaitKind.COORDINATION
        self.hold = np.full(len(index), -1, dtype=np.int32)
        self.is_followed = np.zeros(len(index), dtype=np.bool_)
        self._ended = waits["outcome"] == Outcome.ACQUIRED
        self._holder = waits["holder"]
        self._who, self._when = self.actor, self.start
        self._actors = Actors(trace, self.actor, self.lock, self.start, self.back, self._parents())

    def begin(self) -> tuple[int, int]:
        """Return the wait the path begins with, -1 for none, and whom it is with after that."""
        end = self._trace.duration_ns
        main = next((t for t in self._trace.threads.values() if t.is_main), None)
        last = len(self.index) - 1
        if last < 0:
            return last, 0 if main is None else main.id
        if main is None:
            return last, int(self.actor[last])
        first = int(self._actors.last_before(np.array([main.id]), np.array([end]))[0])
        idle_ns = end - (int(self.back[first]) if first >= 0 else main.start_ns)
        if idle_ns > ASLEEP * end and main.cpu_ns < ASLEEP * idle_ns:
            return last, int(self.actor[last])
        return first, main.id

    def running(self, path: npt.NDArray[np.intc], runner: int) -> Stretches:
        """Return whom the path was with between its waits, and before and after them.

        Parameters
        ----------
        path
            Its waits, the latest first.
        runner
            Whom it was with after the last of them.
        """
        threads = self._trace.threads
        last = threads.get(runner)
        until = min(self._trace.duration_ns, (last.end_ns if last else 0) or LAST_TIME_NS)
        who = np.concatenate([[runner], self._who[path]]).astype(np.int64)
        when = np.concatenate([[until], self._when[path]])
        since = np.concatenate([self.back[path], [self.begin_ns]])
        known = np.isin(who, np.fromiter(threads, dtype=np.int64))
        pieces = self._actors.by_origin(who[known], since[known], when[known])
        return stretches(threads, *pieces)

    def idle_ns(self) -> int:
        """Return how long the main thread was neither on a CPU nor in a recorded wait."""
        threads = self._trace.threads.values()
        main = next((thread for thread in threads if thread.is_main), None)
        if main is None:
            return 0
        own = [
            one.id
            for one in threads
            if one is main or (one.is_task and one.native_id == main.native_id)
        ]
        mine = np.isin(self.actor, own)
        waited = union_ns(self.start[mine], self.back[mine])
        lived = self._trace.duration_ns - max(self.begin_ns, min(main.start_ns, LAST_TIME_NS))
        return max(0, lived - waited - main.cpu_ns)

    def follows(self) -> npt.NDArray[np.int32]:
        """Return for each wait the one before it on the path, -1 for none: an earlier one."""
        who, when = self._ended_by()
        before = self._actors.last_before(who, when)
        here = np.arange(len(before), dtype=np.int32)
        late = np.flatnonzero(before >= here)  # clocks apart, or waits for each other
        own = self._actors.previous()
        before[late] = own[late]
        who[late], when[late] = self.actor[late], self.start[late]
        self._who, self._when = who, when
        return before

    def _ended_by(self) -> tuple[npt.NDArray[np.uint32], Integers]:
        """Return who ended each wait and when: the waiter itself, at its start, if nobody did."""
        who, when = self.actor.copy(), self.start.copy()
        self._find_releases(who, when)
        woken = self._ended & self.is_coordination & (self._holder != 0)
        who[woken], when[woken] = self._holder[woken], self.back[woken]
        # A hold that was not recorded: who had the lock when the wait began is the best there is.
        named = self._ended & ~self.is_coordination & (self.hold < 0) & (self._holder != 0)
        named &= self._holder != self.actor
        who[named], when[named] = self._holder[named], self.got[named]
        self.is_followed = woken | named | (self.hold >= 0)
        for at, thread, end in self._actors.joins(self._ended & self.is_coordination & ~woken):
            who[at], when[at] = thread, end
            self.is_followed[at] = True
        return who, when

    def _find_releases(self, who: npt.NDArray[np.uint32], when: Integers) -> None:
        """Find the release that ended each wait: the last one of its lock before it was had."""
        holds = self._trace.hold_columns
        wanted = np.flatnonzero(self._ended & ~self.is_coordination)
        over = holds["flags"] & int(HoldFlag.OPEN) == 0
        some = np.flatnonzero(over & (holds["end_ns"] > self.begin_ns))
        if not len(wanted) or not len(some):
            return
        ends = bounded(holds["end_ns"])[some]
        locks = np.unique(self.lock[wanted])
        group = np.searchsorted(locks, holds["lock"][some])
        group[group == len(locks)] = 0
        mine = locks[group] == holds["lock"][some]
        some, ends, group = some[mine], ends[mine], group[mine]
        if not len(some):
            return
        line, needles = on_one_line(
            (group, ends), (np.searchsorted(locks, self.lock[wanted]), self.got[wanted])
        )
        order = np.argsort(line, kind="stable")
        at = np.searchsorted(line[order], needles, side="right") - 1
        hold = some[order[np.maximum(at, 0)]]
        end = ends[order[np.maximum(at, 0)]]
        found = (at >= 0) & (holds["lock"][hold] == self.lock[wanted]) & (end > self.start[wanted])
        at_wait = wanted[found]
        self.hold[at_wait] = hold[found]
        who[at_wait], when[at_wait] = holds["release_thread"][hold[found]], end[found]

    def _parents(self) -> dict[int, int]:
        """Return who started a thread, where he waited for its first event to go on."""
        chosen = np.flatnonzero(self._ended & self.is_coordination & (self._holder != 0))
        begun = np.array(
            [self._trace.thread(int(i)).start_ns for i in np.unique(self._holder[chosen])]
        )
        if not len(begun):
            return {}
        first = begun[np.searchsorted(np.unique(self._holder[chosen]), self._holder[chosen])]
        during = chosen[(self.start[chosen] <= first) & (first <= self.back[chosen])]
        children, at = np.unique(self._holder[during], return_index=True)
        return dict(zip(children.tolist(), self.actor[during[at]].tolist(), strict=True))
