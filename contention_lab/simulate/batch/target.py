"""The lock that a remedy is for: where it is taken, and what is done under it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.parties import holders
from contention_lab.simulate.batch.batch import LockKind
from contention_lab.simulate.batch.sections import sections
from contention_lab.simulate.packing import Op, OpFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.trace import Frame, Trace

MOSTLY: Final = 0.9
"""Share of the recorded time of holds from which a place stands for holds that were only counted,
too."""


@dataclass(frozen=True, slots=True)
class Site:
    """A function that takes the lock.

    Attributes
    ----------
    function
        Its name.
    places
        `file.py:line` of the lines, the most held first.
    share
        Of the recorded time that the lock was held.
    records
        Which holds of the trace are its, by position; the last value is for holds that were only
        counted.
    """

    function: str
    places: tuple[str, ...]
    share: float
    records: NDArray[np.bool_]

    def __str__(self) -> str:
        return self.function

    def is_called(self, text: str) -> bool:
        """Tell whether somebody who writes `text` means it."""
        names = {self.function, self.function.rpartition(".")[2], *self.places}
        names |= {place.rpartition(":")[0] for place in self.places}
        names |= {f"{self.function}:{place.rpartition(':')[2]}" for place in self.places}
        return text in names


@dataclass(frozen=True, slots=True)
class Held:
    """What is done under a lock, in ns.

    Attributes
    ----------
    python, native, asleep
        On a core with the GIL, without it, off the core.
    count
        Critical sections.
    is_nested
        Other locks are taken within it.
    """

    python: float
    native: float
    asleep: float
    count: int
    is_nested: bool

    @property
    def total(self) -> float:
        """All of it."""
        return self.python + self.native + self.asleep


@dataclass(frozen=True, slots=True)
class Target:
    """A lock, or all locks made at one place, to be treated.

    Attributes
    ----------
    ids
        Their ids.
    label, type
        What they are called, and their class.
    sites
        Who takes them, who holds longest first.
    held
        What is done under them.
    kind
        The kind of their policy.
    cores
        Of the machine.
    permits
        How many threads may have it at a time.
    """

    ids: tuple[int, ...]
    label: str
    type: str
    sites: tuple[Site, ...]
    held: Held
    kind: str
    cores: int
    permits: int = 1

    def site(self, text: str) -> Site | None:
        """Return the place that somebody means who writes `text`; None if there is none."""
        return next((site for site in self.sites if site.is_called(text)), None)


def target_of(trace: Trace, batch: Batch, ids: Sequence[int], cores: int) -> Target:
    """Return the facts about a lock.

    Parameters
    ----------
    trace, batch
        The recording, and the work taken from it.
    ids
        Ids of the locks.
    cores
        Of the machine.
    """
    lock = trace.lock(ids[0])
    used = tuple(id_ for id_ in ids if id_ in batch.kinds)
    found = batch.kinds[used[0]] if used else LockKind("parking")
    sites, held = _sites(trace, ids), _held(batch, used)
    return Target(used, lock.label, lock.type, sites, held, found.kind, cores, found.permits)


def _sites(trace: Trace, ids: Sequence[int]) -> tuple[Site, ...]:
    spans = hold_spans(trace)
    mine = np.isin(spans.lock, ids)
    parties = holders(trace)
    which = parties.which[spans.index][mine]
    held = np.bincount(which, weights=spans.length_ns[mine], minlength=len(parties.frames))
    index = spans.index[mine]
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number in np.flatnonzero(np.bincount(which, minlength=len(parties.frames))).tolist():
        frame = parties.frames[number]
        if frame is not None:
            groups[_function(frame), frame.filename].append(number)
    total = max(float(held.sum()), 1.0)
    found = []
    for (function, _), numbers in groups.items():
        numbers.sort(key=lambda number: -held[number])
        share = float(held[numbers].sum()) / total
        records = np.zeros(len(trace.hold_columns) + 1, np.bool_)
        records[index[np.isin(which, numbers)]] = True
        records[-1] = share >= MOSTLY
        frames = [parties.frames[number] for number in numbers]
        places = tuple(dict.fromkeys(frame.place for frame in frames if frame is not None))
        found.append(Site(function, places, share, records))
    return tuple(sorted(found, key=lambda site: -site.share))


def _function(frame: Frame) -> str:
    return frame.function.rsplit("<locals>.", 1)[-1]


def _held(batch: Batch, ids: Sequence[int]) -> Held:
    python = native = asleep = 0.0
    count, is_nested = 0, False
    for one in (*batch.crew, *batch.others):
        found = sections(one, ids)
        ops = one.ops[found.of_step >= 0]
        compute, gil = ops["code"] == Op.COMPUTE, (ops["flags"] & int(OpFlag.GIL)) != 0
        python += float(ops["ns"][compute & gil].sum())
        native += float(ops["ns"][compute & ~gil].sum())
        asleep += float(ops["ns"][ops["code"] == Op.SLEEP].sum())
        acquires = int(np.count_nonzero(ops["code"] == Op.ACQUIRE))
        is_nested = is_nested or acquires > len(found)
        count += len(found)
    return Held(python, native, asleep, count, is_nested)
