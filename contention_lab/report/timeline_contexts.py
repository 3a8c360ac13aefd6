"""Who waits where, and who holds it doing what: what a timeline says of an interval.

Many intervals share a context, so contexts are a table. Who is to blame for a wait is who held the
lock longest during it, by `analysis.blame`; nobody, if for longer it was free or changing hands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.blame import UNRECORDED
from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.nested_waits import blocked_calls
from contention_lab.analysis.parties import holder_frame
from contention_lab.analysis.sites import user_frame

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis import Blame
    from contention_lab.analysis.intervals import Spans
    from contention_lab.report.timeline_native import NativeWaits
    from contention_lab.trace import Frame, Lock, Thread, Trace

    Integers = npt.NDArray[np.int64]

_GIL, _NATIVE = 1, 2
"""Records of the layer below Python, by what they are about."""
WORST: Final = 100
"""Waits told in full, with both stacks."""


@dataclass(frozen=True, slots=True)
class WaitContext:
    """What a wait is for, where, and who is to blame.

    Attributes
    ----------
    lock
        None for the GIL.
    site
        The code that waits.
    holder
        Who held it longest meanwhile; None if for longer nobody is known to have.
    held_at
        The code that acquired it.
    doing
        What the holder was executing meanwhile, if known, and not the same.
    let_go
        `doing` is where it released the lock: what it did before is not known.
    """

    lock: Lock | None
    site: Frame | None
    holder: Thread | None
    held_at: Frame | None
    doing: Frame | None
    let_go: bool

    @property
    def parts(self) -> tuple[object, ...]:
        """All that it is made of."""
        return self.lock, self.site, self.holder, self.held_at, self.doing, self.let_go


@dataclass(frozen=True, slots=True)
class HoldContext:
    """What is held, where it was acquired, and the call in which the holder was blocked."""

    lock: Lock
    site: Frame | None
    call: str

    @property
    def parts(self) -> tuple[object, ...]:
        """All that it is made of."""
        return self.lock, self.site, self.call


@dataclass(frozen=True, slots=True)
class WorstWait:
    """A long wait, in full."""

    thread: Thread
    start_ns: int
    wait_ns: int
    spin_ns: int
    context: WaitContext
    waits_in: tuple[Frame, ...]
    holds_in: tuple[Frame, ...]


def wait_contexts(
    trace: Trace,
    blame: Blame,
    records: npt.NDArray[np.int32],
    natives: NativeWaits | None = None,
) -> tuple[tuple[WaitContext, ...], npt.NDArray[np.int32]]:
    """Return contexts, and which of them each wait has.

    Parameters
    ----------
    trace, blame
        The trace, and `analysis.blame` of it.
    records
        Positions in `trace.waits`; below 0, -1 minus a position in `trace.gil_waits`, or in the
        native waits, which are numbered on.
    natives
        Waits in native code, if there are records of them.
    """
    keys = np.zeros((len(records), 7), dtype=np.int64)
    ours = np.flatnonzero(records >= 0)
    wait, waits = records[ours], trace.wait_columns
    main = _main_holds(blame, wait)
    found, hold = main >= 0, np.maximum(main, 0)
    holds = trace.hold_columns
    keys[ours, 0] = waits["lock"][wait]
    keys[ours, 1] = waits["stack"][wait]
    named = main == UNRECORDED
    keys[ours, 2] = np.where(named, waits["holder"][wait], 0)
    keys[ours, 3] = np.where(named, waits["holder_site"][wait], 0)
    if len(holds):
        seen = found & (waits["holder"][wait] == holds["thread"][hold])
        seen &= holds["start_ns"][hold] <= waits["start_ns"][wait]
        keys[ours, 2] = np.where(found, holds["thread"][hold], keys[ours, 2])
        keys[ours, 3] = np.where(found, holds["site"][hold], keys[ours, 3])
        keys[ours, 4] = np.where(found, holds["stack"][hold], 0)
        keys[ours, 5] = np.where(seen, waits["holder_stack"][wait], 0)
    keys[ours[named], 5] = waits["holder_stack"][wait[named]]
    events = np.flatnonzero((records < 0) & (records >= -len(trace.gil_waits)))
    event = -1 - records[events]
    keys[events, 1] = trace.gil_waits["stack"][event]
    keys[events, 2] = trace.gil_waits["holder"][event]
    keys[events, 6] = _GIL
    if natives is not None:
        events = np.flatnonzero(records < -len(trace.gil_waits))
        event = -1 - records[events] - len(trace.gil_waits)
        for column, values in enumerate((natives.lock, natives.stack, natives.holder)):
            keys[events, column] = values[event]
        keys[events, 6] = _NATIVE

    known = _Known(trace)

    def context(key: tuple[int, ...]) -> WaitContext:
        lock, stack, holder, site, release, running, layer = key
        who = known.thread(holder) if holder else None
        waits_at = known.at(stack)
        if layer == _NATIVE and natives is not None:
            return WaitContext(natives.locks[lock], waits_at, who, None, None, let_go=False)
        held_at = known.held_at(site, release)
        doing = known.at(running or release)
        return WaitContext(
            None if layer == _GIL else known.lock(lock),
            waits_at,
            who,
            held_at,
            doing if doing is not held_at else None,
            not running,
        )

    return _contexts(keys, context)


def hold_contexts(
    trace: Trace, records: npt.NDArray[np.int32]
) -> tuple[tuple[HoldContext, ...], npt.NDArray[np.int32]]:
    """Return contexts, and which of them each hold has, by positions in `trace.holds`."""
    holds = trace.hold_columns
    call, names = np.zeros(len(records), dtype=np.int64), [""]
    if len(trace.blocking):
        spans = hold_spans(trace).where(records)
        longest = np.zeros(len(records))
        for kind, ns in blocked_calls(trace, spans, spans.start_ns).items():
            call[ns > longest] = len(names)
            names.append(kind.name.lower())
            longest = np.maximum(longest, ns)
    keys = np.stack(
        [*(holds[name][records].astype(np.int64) for name in ("lock", "site", "stack")), call], 1
    )

    known = _Known(trace)

    def context(key: tuple[int, ...]) -> HoldContext:
        lock, site, stack, blocked_in = key
        return HoldContext(known.lock(lock), known.held_at(site, stack), names[blocked_in])

    return _contexts(keys, context)


def worst_waits(trace: Trace, blame: Blame, waits: Spans) -> tuple[WorstWait, ...]:
    """Return the longest of the waits for locks, the longest first."""
    some = np.flatnonzero(waits.length_ns)
    if len(some) > WORST:
        some = some[np.argpartition(-waits.length_ns[some], WORST)[:WORST]]
    order = np.lexsort((waits.index[some], -waits.length_ns[some]))
    longest = waits.where(some[order])
    contexts, which = wait_contexts(trace, blame, longest.index)
    main = _main_holds(blame, longest.index)
    found = []
    for place, record in enumerate(longest.index.tolist()):
        wait = trace.wait_columns[record]
        context = contexts[which[place]]
        if context.let_go:
            holds_in = trace.hold_columns[int(main[place])]["stack"] if main[place] >= 0 else 0
        else:
            holds_in = wait["holder_stack"]
        found.append(
            WorstWait(
                trace.thread(int(longest.thread[place])),
                int(longest.start_ns[place]),
                int(longest.length_ns[place]),
                min(int(wait["spin_ns"]), int(longest.length_ns[place])),
                context,
                trace.stack(int(wait["stack"])),
                trace.stack(int(holds_in)),
            )
        )
    return tuple(found)


_COORDINATION: Final = -3
"""Stands for the hold of a wait that is not for a lock."""


def _main_holds(blame: Blame, waits: npt.NDArray[np.int32]) -> Integers:
    """Return for each wait the longest hold during it; below 0 if it is none that was recorded."""
    pairs = blame.pairs
    of_pair = np.ascontiguousarray(pairs["wait"])
    first = np.searchsorted(of_pair, waits, side="left")
    count = np.searchsorted(of_pair, waits, side="right") - first
    found = np.full(len(waits), _COORDINATION, dtype=np.int64)
    blamed = np.flatnonzero(count)
    count, first = count[blamed], first[blamed]
    begin = np.cumsum(count) - count
    place = np.arange(int(count.sum())) + np.repeat(first - begin, count)
    ns = pairs["ns"][place]
    if len(blamed):
        most = np.repeat(np.maximum.reduceat(ns, begin), count)
        wait = np.repeat(blamed, count)[ns == most]
        at, which = np.unique(wait, return_index=True)
        found[at] = pairs["hold"][place[ns == most][which]]
    return found


def _contexts(keys: npt.NDArray[np.int64], context: Any) -> tuple[Any, npt.NDArray[np.int32]]:
    """Return the distinct contexts of keys, and which of them each row of keys has."""
    if not len(keys):
        return (), np.zeros(0, dtype=np.int32)
    combinations, which = distinct(*keys.T)
    table: dict[tuple[int, ...], int] = {}
    found: list[Any] = []
    place = np.zeros(len(combinations), dtype=np.int32)
    for at, combination in enumerate(combinations):
        made = context(combination)
        # Its parts are made once and kept, so that they are the same where they are equal.
        parts = tuple(map(id, made.parts))
        place[at] = table.setdefault(parts, len(table))
        if place[at] == len(found):
            found.append(made)
    return tuple(found), place[which]


class _Known:
    """Frames, locks and threads of a trace, the same object wherever they are equal."""

    def __init__(self, trace: Trace) -> None:
        frames: dict[Frame | None, Frame | None] = {}

        def one(frame: Frame | None) -> Frame | None:
            return frames.setdefault(frame, frame)

        self.at = cache(lambda stack: one(user_frame(trace.stack(stack))))
        self.held_at = cache(lambda site, stack: one(holder_frame(trace, site, stack)))
        self.lock = cache(trace.lock)
        self.thread = cache(trace.thread)
