"""What a test can ask about its own waiting: the fixture `contention`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contention_lab.analysis import selected
from contention_lab.analysis.intervals import hold_spans
from contention_lab.testing.limits import order_risks, waited_s, waited_share
from contention_lab.testing.longest_wait import longest_wait

if TYPE_CHECKING:
    from contention_lab.testing.longest_wait import LongestWait
    from contention_lab.testing.recorded_part import RecordedPart
    from contention_lab.trace import Trace


class Contention:
    """The waiting in a test, from its start to the moment of asking.

    Every `lock` is a part of the label, type or place of the locks that are meant, in any case;
    empty for all. Each question reads what has been recorded, which takes about a tenth of a
    second: ask after the work, not within it.
    """

    def __init__(self, part: RecordedPart) -> None:
        self._part = part

    def trace(self) -> Trace:
        """Return the recording of the test so far."""
        return self._part.until_now()

    def wait(self, lock: str = "") -> float:
        """Return all waiting for locks, all threads together, in seconds."""
        return waited_s(self._of(lock))

    def max_wait(self, lock: str = "") -> float:
        """Return the longest single wait, in seconds; 0 if there was none."""
        longest = self.longest(lock)
        return longest.wait_s if longest else 0.0

    def longest(self, lock: str = "") -> LongestWait | None:
        """Return the longest wait with lock, victim and culprit; None if there was none."""
        return longest_wait(self._of(lock))

    def share(self, lock: str = "") -> float:
        """Return all waiting as a share of the time of the threads that wait or work."""
        return waited_share(self._of(lock))

    def held(self, lock: str = "") -> float:
        """Return for how long locks were held while others waited, in seconds."""
        return float(hold_spans(self._of(lock)).length_ns.sum()) / 1e9

    def lock_order_risks(self) -> list[str]:
        """Return the orders of locks that can end in a deadlock, a sentence each."""
        trace = self.trace()
        return list(order_risks(trace, self._part.start_ns(trace)))

    def _of(self, lock: str) -> Trace:
        trace = self.trace()
        return selected(trace, lock=lock) if lock else trace
