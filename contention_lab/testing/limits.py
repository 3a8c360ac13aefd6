"""Limits that a test must keep: the arguments of the marker `contention`, what violates them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from contention_lab.analysis import inversions, selected, thread_time, user_frame, working
from contention_lab.analysis.intervals import lock_waits
from contention_lab.diagnosis.wording import duration, percent, place
from contention_lab.testing.longest_wait import longest_wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.analysis.lock_order import Inversion
    from contention_lab.trace import Trace

_SCALES: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|ms|us|µs)\s*")


class LimitError(ValueError):
    """A limit that cannot be read; one line: what, why, what to write."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a test may wait.

    Attributes
    ----------
    max_wait
        The longest single wait for a lock, in seconds.
    max_total_wait
        All waiting for locks, all threads together, in seconds.
    max_share
        All waiting, as a share of the time of the threads that wait or work.
    lock
        Text in the label, type or place of the locks that these are about; empty for all.
    no_lock_order_risk
        Locks may not be taken in orders that can end in a deadlock.
    """

    max_wait: float | None = None
    max_total_wait: float | None = None
    max_share: float | None = None
    lock: str = ""
    no_lock_order_risk: bool = False

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Limits:
        """Read the arguments of a marker.

        Raises
        ------
        LimitError
            One of them is unknown, or no limit; or there is none.
        """
        known = [one.name for one in fields(cls)]
        for name in arguments:
            if name not in known:
                raise LimitError(f"no limit {name!r}; choose from {', '.join(known)}")
        read = dict(arguments)
        for name in ("max_wait", "max_total_wait"):
            if name in read:
                read[name] = seconds(read[name], name)
        share = read.get("max_share")
        if share is not None and not (_is_number(share) and 0 <= share <= 1):
            raise LimitError(f"max_share={share!r}: give a share from 0 to 1")
        if not isinstance(read.get("lock", ""), str):
            raise LimitError(f"lock={read['lock']!r}: give a part of the lock's name")
        limits = cls(**read)
        if limits == cls(lock=limits.lock):
            raise LimitError("nothing is limited: give max_wait='5ms', for example")
        return limits

    def violations(self, trace: Trace, since_ns: int = 0) -> Iterator[str]:
        """Yield what a test has violated, a sentence each.

        Parameters
        ----------
        trace
            Of the test.
        since_ns
            Lock orders that were complete before are somebody else's fault.
        """
        about = f" for {self.lock!r}" if self.lock else ""
        part = selected(trace, lock=self.lock) if self.lock else trace
        worst = longest_wait(part)
        if worst is not None:
            if self.max_wait is not None and worst.wait_s > self.max_wait:
                yield f"{worst}; at most {duration(self.max_wait)} is allowed"
            total_s = waited_s(part)
            if self.max_total_wait is not None and total_s > self.max_total_wait:
                yield (
                    f"threads waited {duration(total_s)}{about} in all; at most "
                    f"{duration(self.max_total_wait)} is allowed; the longest: {worst}"
                )
            share = waited_share(part)
            if self.max_share is not None and share > self.max_share:
                yield (
                    f"threads waited {percent(share)} of their time{about}; at most "
                    f"{percent(self.max_share)} is allowed; the longest: {worst}"
                )
        if self.no_lock_order_risk:
            yield from order_risks(trace, since_ns)


def seconds(value: Any, name: str) -> float:
    """Return a duration: a number of seconds, or a text such as `5ms`.

    Raises
    ------
    LimitError
        It is neither.
    """
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        return float(found[1]) * _SCALES[found[2]]
    if _is_number(value) and value >= 0 and math.isfinite(value):
        return float(value)
    raise LimitError(f"{name}={value!r}: give seconds, or a text such as '5ms'")


def waited_s(trace: Trace) -> float:
    """Return all waiting for locks, in seconds."""
    return float(lock_waits(trace).length_ns.sum()) / 1e9


def waited_share(trace: Trace) -> float:
    """Return all waiting as a share of the time of the threads that wait for locks or work.

    A thread is there from its first event, or the start of the test, to its end, or the end of the
    test. Threads that only wait for others to finish are left out.
    """
    first_ns = int(lock_waits(trace).start_ns.min(initial=trace.duration_ns))
    there = [
        max(0, (time.thread.end_ns or trace.duration_ns) - max(first_ns, time.thread.start_ns))
        for time in working(thread_time(trace))
        if (time.thread.end_ns or trace.duration_ns) > first_ns
    ]
    return waited_s(trace) * 1e9 / sum(there) if sum(there) else 0.0


def order_risks(trace: Trace, since_ns: int) -> Iterator[str]:
    """Yield the orders of locks that can end in a deadlock and were not complete before."""
    for ring in inversions(trace):
        if max(step.time_ns for step in ring.steps) >= since_ns:
            yield _risk_said(trace, ring)


def _risk_said(trace: Trace, ring: Inversion) -> str:
    steps = "; ".join(
        f"`{trace.lock(step.taken).label}` is taken while `{trace.lock(step.held).label}` is held, "
        f"in {place(user_frame(step.stack))}"
        for step in ring.steps
    )
    return f"locks are taken in orders that can end in a deadlock: {steps}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
