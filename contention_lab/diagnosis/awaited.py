"""The facts about whoever is waited for in one case of coordination: how busy, and with what.

It states facts and judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.overtaking import Visits, visits
from contention_lab.analysis.passed_turns import LEAST_WAKEUPS, MOST_USES
from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places, waking_stacks
from contention_lab.diagnosis.thresholds import (
    LEAST_BUSY,
    LEAST_COVERED,
    LEAST_SELF_SUPPLIED,
    MOSTLY,
)
from contention_lab.trace import WaitKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from contention_lab.analysis.activity import Activity, Doing
    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.diagnosis.finding import Party
    from contention_lab.trace import Frame, Trace

MOST_WAKERS: Final = 32
"""Threads looked at, those who ended the most waiting first."""


@dataclass(frozen=True, eq=False)
class Awaited:
    """Those who ended the waits of a case.

    Attributes
    ----------
    trace, activity, case
        What it is about.
    """

    trace: Trace
    activity: Activity
    case: CoordinationCase

    @cached_property
    def wakers(self) -> tuple[int, ...]:
        """Who they are, the one who ended the most waiting first."""
        return tuple([*self.case.wakers][:MOST_WAKERS])

    @cached_property
    def wait_share(self) -> float:
        """Share of the waiters' time that they waited here."""
        lived = sum(end - start for start, end in map(self.activity.life, self.case.waiters))
        return self.case.wait_ns / lived if lived else 0.0

    @cached_property
    def work_share(self) -> float:
        """How long the waiters worked for each unit of time that somebody waited, together.

        Their time from the first wait on, outside of recorded waits.
        """
        first = int(self.case.start_ns.min(initial=0))
        everything = Windows.union(np.array([first]), np.array([self.trace.duration_ns]))
        worked = sum(self.activity.busy_ns(one, everything) for one in self.case.waiters)
        return worked / self.case.windows.total_ns if self.case.windows.total_ns else 0.0

    @cached_property
    def busy_share(self) -> float:
        """Share of the time with somebody waiting in which they were in no recorded wait.

        The mean over the wakers, weighted by the waiting they ended.
        """
        return self._share_of_wakers(self.activity.busy_ns)

    @cached_property
    def entering_share(self) -> float:
        """Share of that time in which they waited for the lock of the very thing, to do their part.

        Who holds it then is one of those who wait, or one of their own: nobody further on.
        """
        return self._share_of_wakers(
            lambda thread, windows: self.activity.entering_ns(thread, self.case.locks, windows)
        )

    @property
    def is_bottleneck(self) -> bool:
        """Whether they hardly ever wait for anybody further on, and mostly do not wait at all."""
        if self.busy_share >= LEAST_BUSY or self.busy_share < MOSTLY:
            return self.busy_share >= LEAST_BUSY
        return self.busy_share + self.entering_share >= LEAST_BUSY

    def _share_of_wakers(self, measure: Callable[[int, Windows], int]) -> float:
        whole = part = 0.0
        for waker in self.wakers:
            lived = self.case.windows.within(*self.activity.life(waker))
            if lived.total_ns:
                weight = self.case.wakers[waker]
                part += weight * measure(waker, lived) / lived.total_ns
                whole += weight
        return part / whole if whole else 0.0

    @cached_property
    def doing(self) -> Doing:
        """What they did while busy."""
        return self.activity.doing(self.wakers, self.case.windows)

    @cached_property
    def running_share(self) -> float:
        """Share of their busy time that they ran, without what they waited for a core meanwhile.

        On a busy machine one that sleeps a little is on the books for a core for most of the time.
        """
        had = {one: self.activity.on_cpu_share(one) for one in self.wakers}
        weights = {one: self.case.wakers[one] for one, share in had.items() if share is not None}
        whole = sum(weights.values())
        on_cpu = (
            sum((had[one] or 0.0) * ns for one, ns in weights.items()) / whole if whole else 1.0
        )
        ran = self.doing.running * on_cpu
        return ran / (ran + 1.0 - self.doing.running) if ran else 0.0

    @cached_property
    def stacks(self) -> dict[int, float]:
        """Stacks they were seen under while busy, with weights.

        Samples if there are any, else what tasks saw of the task they waited for, else where the
        waiters were woken.
        """
        seen = self.activity.stacks(self.wakers, self.case.windows)
        if seen:
            return seen
        seen = summed(self.case.awaited_stack, self.case.end_ns - self.case.start_ns)
        seen.pop(0, None)
        return seen or waking_stacks(self.case)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The same as places."""
        return places(self.trace, self.stacks, self.case.wait_ns / 1e9)

    @property
    def asks(self) -> bool:
        """Whether a signal is made for each wait: who makes one has asked somebody for something.

        That may be an answer, or a turn at a lock that the program has made itself.
        """
        case = self.case
        return (
            case.purpose in (Purpose.EVENT, Purpose.CONDITION, Purpose.PERMIT)
            and len(case.index) >= LEAST_WAKEUPS
            and len(case.index) <= MOST_USES * len(case.locks)
        )

    @property
    def is_mutual(self) -> bool:
        """Whether threads wait for one another: those who wait are those who end the waiting."""
        case = self.case
        if len(case.waiters) < 2 or case.woken_share < MOSTLY:
            return False
        return (
            case.self_supplied_share >= LEAST_SELF_SUPPLIED
            or case.self_ended_share >= MOSTLY
            or (self.asks and case.mutual_share >= MOSTLY)
        )

    @cached_property
    def visits(self) -> Visits | None:
        """Visits that others made under the lock of a condition meanwhile; None where unknown."""
        is_condition = self.case.purpose is Purpose.CONDITION
        return visits(self.trace, self.case) if is_condition else None

    @property
    def is_for_leaving(self) -> bool:
        """Whether it is waited for others to leave: one of them is inside all the time."""
        seen = self.visits
        return seen is not None and seen.covered_share >= LEAST_COVERED

    @property
    def takes_per_wakeup(self) -> float:
        """How often wakers took the lock for each time they ended a wait; 0 where not known.

        Taking it back after a wait of their own is no such taking.
        """
        through = self.case.last == np.arange(len(self.case.last))
        ended = self.case.batch[through & (self.case.waker != 0)]
        counters = self.trace.counters
        mine = np.isin(counters["lock"], [*self.case.locks])
        mine &= np.isin(counters["thread"], [*self.case.wakers])
        waits = self.trace.wait_columns
        back = np.isin(waits["lock"], [*self.case.locks])
        back &= np.isin(waits["thread"], [*self.case.wakers])
        back &= waits["kind"] == WaitKind.COORDINATION
        taken = int(counters["acquires"][mine].sum()) - int(np.count_nonzero(back))
        return taken / len(np.unique(ended)) if len(ended) else 0.0

    def evidence(self) -> dict[str, float | int | None]:
        """Return the figures that findings about coordination state."""
        case = self.case
        length = case.end_ns - case.start_ns
        return {
            "wait_s": case.wait_ns / 1e9,
            "waits": len(case.index),
            "waiters": len(case.waiters),
            "wakers": len(case.wakers),
            "wait_share": self.wait_share,
            "longest_wait_s": float(length.max(initial=0)) / 1e9,
            "anybody_waits_s": case.windows.total_ns / 1e9,
            "woken_share": case.woken_share,
            "awaited_busy_share": self.busy_share,
            "awaited_running_share": self.doing.running,
        }

    @cached_property
    def works_elsewhere(self) -> float:
        """Share of what was seen of them in functions that the waking stacks do not pass through.

        Code that gives the item itself may only wait for the next one to come; a function it calls
        in between does something.
        """
        giving = {
            _function(frame)
            for stack in waking_stacks(self.case)
            for frame in self.trace.stack(stack)
            if is_user_code(frame.filename)
        }
        whole = sum(self.stacks.values())
        elsewhere = sum(
            weight
            for stack, weight in self.stacks.items()
            if (frame := user_frame(self.trace.stack(stack))) is not None
            and _function(frame) not in giving
        )
        return elsewhere / whole if whole else 0.0


def _function(frame: Frame) -> tuple[str, str]:
    return frame.filename, frame.function
