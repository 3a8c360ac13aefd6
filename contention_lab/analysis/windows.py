"""Sets of moments: sorted spans of time that do not overlap, and what can be asked of them.

It knows nothing of waits or threads. All is whole-array arithmetic on int64 nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Spans of time, sorted, none empty, none touching the next.

    Attributes
    ----------
    start_ns, end_ns
        int64.
    """

    start_ns: Integers
    end_ns: Integers

    @classmethod
    def union(cls, start_ns: Integers, end_ns: Integers) -> Windows:
        """Return the moments that lie in at least one span; spans may be in any order, or empty."""
        some = end_ns > start_ns
        start, end = start_ns[some], end_ns[some]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        if not len(start):
            return cls(start, end)
        reach = np.maximum.accumulate(end)
        fresh = np.concatenate([[True], start[1:] > reach[:-1]])
        last = np.append(np.flatnonzero(fresh)[1:], len(start)) - 1
        return cls(start[fresh], reach[last])

    @property
    def total_ns(self) -> int:
        """How long they are together."""
        return int((self.end_ns - self.start_ns).sum())

    def covered_ns(self, start_ns: Integers, end_ns: Integers) -> Integers:
        """Return for each span how much of it lies within."""
        covered: Integers = np.maximum(0, self._until(end_ns) - self._until(start_ns))
        return covered

    def contains(self, time_ns: Integers) -> npt.NDArray[np.bool_]:
        """Tell for each moment whether it lies within."""
        at = np.searchsorted(self.start_ns, time_ns, side="right") - 1
        found: npt.NDArray[np.bool_] = at >= 0
        found[found] = time_ns[found] < self.end_ns[at[found]]
        return found

    def without(self, other: Windows) -> Windows:
        """Return the moments that are not in the other."""
        edges = np.concatenate([self.start_ns, self.end_ns, other.start_ns, other.end_ns])
        edges.sort(kind="stable")
        start, end = edges[:-1], edges[1:]
        kept = self.contains(start) & ~other.contains(start)
        return Windows.union(start[kept], end[kept])

    def within(self, start_ns: int, end_ns: int) -> Windows:
        """Return the moments from one time to another."""
        start, end = np.clip(self.start_ns, start_ns, None), np.clip(self.end_ns, None, end_ns)
        kept = end > start
        return Windows(start[kept], end[kept])

    def joined(self, gap_ns: int) -> Windows:
        """Return them with gaps of up to `gap_ns` closed."""
        widened = Windows.union(self.start_ns, self.end_ns + gap_ns)
        return Windows(widened.start_ns, widened.end_ns - gap_ns)

    def _until(self, time_ns: Integers) -> Integers:
        """Return how much lies before each moment."""
        if not len(self.start_ns):
            return np.zeros(len(time_ns), dtype=np.int64)
        length = self.end_ns - self.start_ns
        before = np.cumsum(length) - length
        at = np.searchsorted(self.start_ns, time_ns, side="right") - 1
        inside = np.minimum(length[at], time_ns - self.start_ns[at])
        until: Integers = np.where(at < 0, 0, before[at] + inside)
        return until
