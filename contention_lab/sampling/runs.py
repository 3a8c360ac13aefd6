"""Samples of one thread in a row that say the same: one wait, one hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contention_lab.sampling.frame import SampledFrame
    from contention_lab.sampling.sampled_trace import Seen
    from contention_lab.sampling.stack_locks import NamedLock

LONGEST_GAP: Final = 4
"""Looks, on average, that may be missing within a run."""


@dataclass(slots=True)
class Run:
    """Samples in a row.

    Attributes
    ----------
    parts
        The samples, each with who was found to have the lock (place plus 1; 0 nobody).
    lock, waiters
        Of a hold: the lock, and how many waited for it at most.
    """

    parts: list[tuple[Seen, int]]
    lock: NamedLock | None = None
    waiters: int = 0
    _least_ns: int = field(default=0)

    @property
    def start_ns(self) -> int:
        """Half of the time that the first sample stands for before it."""
        first = self.parts[0][0].sample
        return max(self._least_ns, first.time_ns - first.weight_ns // 2)

    @property
    def end_ns(self) -> int:
        """So that the run is as long as what its samples stand for together."""
        return self.start_ns + sum(one.sample.weight_ns for one, _ in self.parts)

    def usual_frames(self) -> tuple[SampledFrame, ...]:
        """Return the stack that most of the samples have."""
        counts: Counter[tuple[SampledFrame, ...]] = Counter()
        for one, _ in self.parts:
            counts[one.frames] += one.sample.weight_ns
        return counts.most_common(1)[0][0]

    def usual_holder(self) -> int:
        """Return who was found to have the lock most often; 0 if mostly nobody was."""
        holder, count = Counter(holder for _, holder in self.parts).most_common(1)[0]
        return holder if 2 * count >= len(self.parts) else 0


def runs(
    seen: Sequence[Seen],
    holders: Sequence[int],
    key: Callable[[Seen], Any],
    interval_ns: int,
) -> Iterator[Run]:
    """Yield runs of each thread's samples with one key, those without a key left out.

    Parameters
    ----------
    seen, holders
        Samples in the order of their time, and who was found to have the lock.
    key
        What the samples of a run have in common; None or another false value for none.
    interval_ns
        Between two looks, on average.
    """
    open_: dict[int, tuple[Any, Run]] = {}
    ends: dict[int, int] = {}
    for one, holder in zip(seen, holders, strict=True):
        thread, mine = one.sample.thread, key(one)
        before = open_.get(thread)
        if before is not None:
            gap = one.sample.time_ns - before[1].parts[-1][0].sample.time_ns
            if mine == before[0] and gap <= LONGEST_GAP * interval_ns:
                before[1].parts.append((one, holder))
                continue
            yield before[1]
            ends[thread] = before[1].end_ns
            del open_[thread]
        if mine:
            open_[thread] = mine, Run([(one, holder)], _least_ns=ends.get(thread, 0))
    for _, run in open_.values():
        yield run
