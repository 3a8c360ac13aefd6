"""What cannot be true in the records of a trace, counted.

It changes nothing: records stay as they were written, and the analysis bounds what it uses. One
pass over each chunk while it is still warm from its checksum; no lookups where ids run from 1 to
n, as the recorder numbers them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.trace.schema import HOLD, ChunkKind, HoldFlag, Outcome, WaitKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import numpy.typing as npt

    from contention_lab.trace.records import Records

LAST_TIME_NS: Final = 1 << 62
"""146 years after the start: times beyond it are nonsense and would overflow sums."""


class Ids:
    """The ids a table defines, ready to look for strangers."""

    def __init__(self, known: Collection[int]) -> None:
        self._count = len(known)
        self._sorted = np.array(sorted(known), dtype=np.uint64)
        self._contiguous = self._count == 0 or int(self._sorted[-1]) == self._count

    def strangers(self, ids: npt.NDArray[np.unsignedinteger[Any]]) -> int:
        """Count the ids that are neither 0 nor defined."""
        if self._contiguous:
            return int(np.count_nonzero(ids > self._count))
        at = np.minimum(np.searchsorted(self._sorted, ids), self._count - 1)
        return int(np.count_nonzero((self._sorted[at] != ids) & (ids != 0)))


class Checks:
    """Counts of records that cannot be true, and the time of the last event.

    Parameters
    ----------
    locks, threads, frames, stacks
        The ids the file defines.
    """

    def __init__(
        self,
        *,
        locks: Collection[int],
        threads: Collection[int],
        frames: Collection[int],
        stacks: Collection[int],
    ) -> None:
        self.last_event_ns = 0
        self._locks = Ids(locks)
        self._threads = Ids(threads)
        self._frames = Ids(frames)
        self._stacks = Ids(stacks)
        self._odd: Counter[str] = Counter()

    def waits(self, records: Records) -> None:
        """Look at a chunk of `schema.WAIT`."""
        start, end = records["start_ns"], records["end_ns"]
        # An open wait may have no end.
        ended = records["outcome"] != Outcome.OPEN
        self._times(start, end, "waits")
        self._count("waits end before they start", (end < start) & ended)
        self._count(
            "waits are longer for the GIL than as a whole",
            (end >= start) & (records["gil_ns"] > end - start) & ended,
        )
        self._count(
            "waits have an outcome or a kind this version does not know",
            (records["outcome"] > max(Outcome)) | (records["kind"] > max(WaitKind)),
        )
        self._count("waits name no lock", records["lock"] == 0)
        self._strangers("waits", records, self._locks, "lock")
        self._strangers("waits", records, self._threads, "thread", "holder")
        self._strangers("waits", records, self._stacks, "stack", "holder_stack", "awaited_stack")
        self._strangers("waits", records, self._frames, "holder_site")

    def holds(self, thread: int, records: Records) -> None:
        """Look at a chunk of `schema.HOLD` or, of a thread, `schema.SHORT_HOLD`."""
        if records.dtype == HOLD:
            start, end = records["start_ns"], records["end_ns"]
            ended = records["flags"] & int(HoldFlag.OPEN) == 0
            self._times(start, end, "holds")
            self._count("holds end before they start", (end < start) & ended)
            self._strangers("holds", records, self._threads, "thread", "release_thread")
            self._strangers("holds", records, self._stacks, "stack")
        else:
            start = records["start_ns"]
            self._times(start, start + records["hold_ns"].astype(np.uint64), "holds")
            if self._threads.strangers(np.array([thread], dtype=np.uint32)):
                self._odd["holds have a thread the file does not define"] += len(records)
        self._count("holds name no lock", records["lock"] == 0)
        self._strangers("holds", records, self._locks, "lock")
        self._strangers("holds", records, self._frames, "site")

    def counters(self, records: Records) -> None:
        """Look at a chunk of `schema.COUNTER`."""
        self._strangers("counters", records, self._locks, "lock")
        self._strangers("counters", records, self._threads, "thread")

    def orders(self, records: Records) -> None:
        """Look at a chunk of `schema.ORDER`."""
        self._strangers("lock orders", records, self._locks, "lock", "held")
        self._strangers("lock orders", records, self._threads, "thread")
        self._strangers("lock orders", records, self._stacks, "stack")
        self._strangers("lock orders", records, self._frames, "held_site")

    def layer(self, kind: ChunkKind, records: Records) -> None:
        """Look at a chunk of one of the `schema.LAYER_KINDS`."""
        what = kind.name.lower()
        fields = records.dtype.names or ()
        if "end_ns" in fields:
            start, end = records["start_ns"], records["end_ns"]
            self._times(start, end, what)
            self._count(f"{what} end before they start", end < start)
        self._strangers(what, records, self._stacks, *({"stack"} & {*fields}))
        if kind == ChunkKind.NATIVE_WAITS:  # its holder and lock are not of these tables
            self._strangers(what, records, self._threads, "thread")
            return
        self._strangers(what, records, self._threads, *({"thread", "holder"} & {*fields}))
        self._strangers(what, records, self._locks, *({"lock"} & {*fields}))

    def event(self, time_ns: int) -> None:
        """Note a time at which the recording was still going on."""
        if time_ns < LAST_TIME_NS:
            self.last_event_ns = max(self.last_event_ns, time_ns)

    def problems(self) -> Iterator[str]:
        """Yield what was found, one sentence each."""
        for what, times in sorted(self._odd.items()):
            yield f"{times} {what}"

    def _times(self, start: npt.NDArray[np.uint64], end: npt.NDArray[np.uint64], what: str) -> None:
        impossible = (start >= LAST_TIME_NS) | (end >= LAST_TIME_NS)
        if impossible.any():
            self._count(f"{what} have impossible times", impossible)
            start, end = start[~impossible], end[~impossible]
        if len(start):
            self.event(max(int(start.max()), int(end.max())))

    def _count(self, what: str, found: npt.NDArray[np.bool_]) -> None:
        times = int(np.count_nonzero(found))
        if times:
            self._odd[what] += times

    def _strangers(self, what: str, records: Records, ids: Ids, *columns: str) -> None:
        for column in columns:
            times = ids.strangers(records[column])
            if times:
                self._odd[f"{what} have a {column} the file does not define"] += times
