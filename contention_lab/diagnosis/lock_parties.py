"""Who waited for a lock, who held it meanwhile, and for how long: places with their stacks.

It works on one group of locks at a time, from records of which most belong to other locks; so what
all groups need is laid out once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.analysis.parties import holders, named_holders, victims
from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.diagnosis.finding import Party
from contention_lab.diagnosis.lock_case import HoldTimes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from contention_lab.analysis.charges import Charges
    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Frame, Trace

PARTIES: Final = 10
"""Victims and culprits named per lock, at most."""


class LockParties:
    """Waits, holds and charges of a trace, sorted into groups of locks.

    Parameters
    ----------
    trace
        The trace.
    charges
        What its holds cost.
    groups
        Ids of locks, one sequence for each group; no lock is in two of them.
    """

    def __init__(self, trace: Trace, charges: Charges, groups: Sequence[Sequence[int]]) -> None:
        self.trace = trace
        self.charges = charges
        self._waits, self._holds = lock_waits(trace), hold_spans(trace)
        self._of_wait = _sorted_into(groups, self._waits.lock)
        self._of_hold = _sorted_into(groups, self._holds.lock)
        self._of_charge = _sorted_into(groups, charges.lock)
        self._victims, self._holders = victims(trace), holders(trace)
        self._named = named_holders(trace)
        self._of_group: dict[int, Spans] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}

    @property
    def spans(self) -> tuple[Spans, Spans]:
        """All waits for locks, and all holds."""
        return self._waits, self._holds

    def waits(self, group: int) -> Spans:
        """Return the waits for the locks of a group."""
        if group not in self._of_group:
            self._of_group = {group: _part(self._waits, self._of_wait[group])}
        return self._of_group[group]

    def held(self, group: int) -> Spans:
        """Return the holds of the locks of a group."""
        return _part(self._holds, self._of_hold[group])

    def charged_ns(self, group: int) -> tuple[int, int]:
        """Return the waiting that holds of a group are charged with, and of it the GIL's."""
        mine = self._of_charge[group]
        return int(self.charges.ns[mine].sum()), int(self.charges.gil_ns[mine].sum())

    def charged_holds(self, group: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return recorded holds of a group, and what each cost without the GIL's part."""
        mine = self._of_charge[group]
        mine = mine[self.charges.hold[mine] >= 0]
        return self.charges.hold[mine], self.charges.ns[mine] - self.charges.gil_ns[mine]

    def in_libraries_share(self, group: int) -> float:
        """Return the share of the charges of holds that code other than the user's released."""
        hold, ns = self.charged_holds(group)
        (stacks, which) = distinct(self.trace.hold_columns["stack"][hold])
        library = np.array([_of_library(self._stack(stack)) for (stack,) in stacks], np.bool_)
        return _share(float(ns[library[which]].sum()), float(ns.sum())) if len(hold) else 0.0

    def victims(self, group: int) -> tuple[Party, ...]:
        """Return the places that waited, with their heaviest stacks, the most time first."""
        waits = self.waits(group)
        whole_s = int(waits.length_ns.sum()) / 1e9
        stacks = waits.of(self.trace.wait_columns["stack"])
        found = []
        for place, weights in _weighed(waits.of(self._victims.which), waits.length_ns, stacks):
            total_s = sum(weights.values()) / 1e9
            stack = self._heaviest({stack: weight for (stack,), weight in weights.items()})
            found.append(
                Party(self._victims.frames[place], stack, total_s, _share(total_s, whole_s))
            )
        return tuple(found)

    def culprits(self, group: int) -> tuple[Party, ...]:
        """Return the places that acquired, with what they were executing while others waited.

        A holder that was seen at the very place where it acquires had only just been given the
        lock: what it does with it, it shows later, and if it is never seen, at its release.
        """
        whole_s = int(self.waits(group).length_ns.sum()) / 1e9
        mine = self._of_charge[group]
        hold, wait = self.charges.hold[mine], self.charges.wait[mine]
        held, seen = hold >= 0, wait >= 0
        place = np.zeros(len(mine), dtype=np.int32)
        place[held] = self._holders.which[hold[held]]
        place[~held] = len(self._holders.frames) + self._named.which[wait[~held]]
        stack, site = np.zeros((2, len(mine)), dtype=np.uint32)
        stack[held] = self.trace.hold_columns["stack"][hold[held]]
        stack[seen] = self.trace.wait_columns["holder_stack"][wait[seen]]
        site[held] = self.trace.hold_columns["site"][hold[held]]
        frames = (*self._holders.frames, *self._named.frames)
        ns = self.charges.ns[mine] - self.charges.gil_ns[mine]
        found = []
        for at, weights in _weighed(place, ns, seen, stack, site):
            acquired, total_s = frames[at], sum(weights.values()) / 1e9
            ways: list[dict[int, float]] = [{}, {}, {}]
            at_line = {site: self.trace.frames.get(site) for _, _, site in weights}
            users = {stack: user_frame(self._stack(stack)) for _, stack, _ in weights}
            for (running, under, acquire), weight in weights.items():
                way = running * (2 - (users[under] == at_line[acquire]))
                ways[way][under] = ways[way].get(under, 0.0) + weight
            heaviest = self._heaviest(next(filter(None, reversed(ways))))
            site_of = user_frame(heaviest) or acquired
            found.append(Party(site_of, heaviest, total_s, _share(total_s, whole_s), acquired))
        return tuple(found)

    def hold_times(self, group: int) -> dict[Frame | None, HoldTimes]:
        """Return how long the holds of a group lasted, by where the lock was acquired."""
        spans, columns = self.held(group), self.trace.hold_columns
        place, length = spans.of(self._holders.which), spans.length_ns / 1e9
        displaced = np.zeros(len(length))
        measured = np.flatnonzero(
            (spans.of(columns["cpu_ns"]) > 0) & (spans.of(columns["preemptions"]) > 0)
        )
        cpu = columns["cpu_ns"][spans.index[measured]].astype(np.int64) / 1e9
        displaced[measured] = np.maximum(length[measured] - cpu, 0.0)
        hold, ns = self.charged_holds(group)
        cost = np.zeros(1 + int(max(hold.max(initial=0), spans.index.max(initial=0))))
        cost[hold] = ns
        cost = cost[spans.index]
        order = np.argsort(place, kind="stable")
        first = np.flatnonzero(np.diff(place[order].astype(np.int32), prepend=-1))
        return {
            self._holders.frames[int(place[part[0]])]: HoldTimes(
                len(part),
                float(length[part].sum()),
                float(np.median(length[part])),
                _middle(length[part], cost[part]),
                float(displaced[part].sum()),
            )
            for part in np.split(order, first[1:])
            if len(part)
        }

    def _stack(self, number: int) -> tuple[Frame, ...]:
        if number not in self._stacks:
            self._stacks[number] = self.trace.stack(number)
        return self._stacks[number]

    def _heaviest(self, weights: Mapping[int, float]) -> tuple[Frame, ...]:
        """Return the heaviest stack at the heaviest line of the heaviest function."""
        stacks = {stack: self._stack(stack) for stack in weights}
        for level in (_function, user_frame):
            keys: dict[int, object] = {stack: level(frames) for stack, frames in stacks.items()}
            sums: dict[object, float] = defaultdict(float)
            for stack, key in keys.items():
                sums[key] += weights[stack]
            most = max(sums, key=lambda key: sums[key])
            stacks = {stack: stacks[stack] for stack, key in keys.items() if key == most}
        return stacks[max(stacks, key=lambda stack: weights[stack])]


def _part(spans: Spans, positions: npt.NDArray[np.int32]) -> Spans:
    """Return some spans; without a copy if it is all of them, in their order."""
    return spans if len(positions) == len(spans.index) else spans.where(positions)


def _sorted_into(
    groups: Sequence[Sequence[int]], lock: npt.NDArray[np.integer[Any]]
) -> list[npt.NDArray[np.int32]]:
    """Return for each group the positions of its locks' records, in their order."""
    others = 1 + max(map(max, filter(None, groups)), default=0)
    number = np.full(others + 1, len(groups), np.uint8)
    for at, locks in enumerate(groups):
        number[np.fromiter(locks, dtype=np.intp)] = at
    of_record = number[np.minimum(lock, others)]
    return [np.flatnonzero(of_record == at).astype(np.int32) for at in range(len(groups))]


def _weighed(
    which: npt.NDArray[np.integer[Any]], ns: npt.NDArray[np.int64], *columns: npt.NDArray[Any]
) -> Iterator[tuple[int, dict[tuple[int, ...], float]]]:
    """Yield places with the time under each combination of columns, the most time first."""
    combinations, at = distinct(which, *(column * 1 for column in columns))
    times = np.bincount(at, weights=ns, minlength=len(combinations)).tolist()
    places: dict[int, dict[tuple[int, ...], float]] = defaultdict(dict)
    for (place, *rest), time in zip(combinations, times, strict=True):
        places[place][tuple(rest)] = time
    order = sorted(places.items(), key=lambda item: -sum(item[1].values()))
    return (item for item in order[:PARTIES] if sum(item[1].values()) > 0)


def _middle(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """Return the value that half of the weight is below; without any weight, the median."""
    if not weights.sum():
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[np.searchsorted(reached, 0.5)]])


def _of_library(stack: Sequence[Frame]) -> bool:
    return bool(stack) and not is_user_code(stack[0].filename)


def _share(part_s: float, whole_s: float) -> float:
    return part_s / whole_s if whole_s else 0.0


def _function(stack: Sequence[Frame]) -> object:
    """Return the innermost function of user code."""
    frame = user_frame(stack)
    return frame and (frame.filename, frame.function)
