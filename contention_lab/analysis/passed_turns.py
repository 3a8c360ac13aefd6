"""Locks that a program has made itself of one signal for each waiter.

Whoever finds such a lock taken leaves a signal (a lock that is armed) on a list and waits for it;
whoever releases the lock takes one from the list and gives the signal. Nobody holds the signals,
but the turn goes from waiter to waiter: a thread has it from the moment it is woken until it wakes
the next one. That is a hold of the lock as a whole, so waits become waits for it, and turns its
holds. Where the turn began without a wait, it is known from when the next one began to wait.

It decides by who wakes whom alone, never by how long anything took. A thread that wakes others
without having been woken (a server, a producer) passes on no turn; nor is it a lock where each
always wakes the same one, by the same signal: a ring.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.trace import Outcome, WaitKind
from contention_lab.trace.schema import COUNTER, HOLD

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]

MADE_BY_HAND: Final = "for each waiter"
"""How the type of such a lock ends, after the type of its signals."""
LEAST_PASSED: Final = 0.9
"""Share of the wake-ups that must be by a thread that had been woken and had woken nobody since.
Calls that wait for the calls they make, four deep, come to three quarters."""
LEAST_WAKEUPS: Final = 20
"""Wake-ups before anything is concluded from who woke whom."""
MOST_SAME: Final = 0.8
"""Share of the wake-ups in which a thread wakes the one that it wakes most, where signals are used
again: in a ring it is all."""
MOST_USES: Final = 1.5
"""Waits for each signal up to which signals are made for one wait."""


@dataclass(frozen=True, slots=True, eq=False)
class WakeUps:
    """Waits that a signal ended, by the time of the signal.

    Attributes
    ----------
    wait
        Position in the records of waits.
    lock, thread
        The signal and who waited for it, int64.
    start_ns, got_ns
        When the wait began, and the waiter had its signal.
    giver, given_ns, stack
        Who gave it, when, and the stack he did it under.
    """

    wait: Integers
    lock: Integers
    thread: Integers
    start_ns: Integers
    got_ns: Integers
    giver: Integers
    given_ns: Integers
    stack: Integers

    def where(self, chosen: npt.NDArray[Any]) -> WakeUps:
        """Return the chosen ones."""
        return WakeUps(*(getattr(self, name)[chosen] for name in self.__slots__))


def with_turns(trace: Trace, wakeups: WakeUps) -> Trace:
    """Return the trace with locks made of signals as locks.

    Parameters
    ----------
    trace
        Has waits for signals as coordination, in one chunk, and no holds of signals.
    wakeups
        The waits for signals that are known to have been ended.
    """
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for (number,) in distinct(wakeups.lock)[0]:
        lock = trace.lock(number)
        groups[lock.type, lock.label, lock.site].append(number)
    for ids in groups.values():
        part = wakeups.where(np.isin(wakeups.lock, ids))
        part = part.where(np.argsort(part.given_ns, kind="stable"))
        turn = _turns(part)
        if _is_lock(part, turn):
            trace = _with_lock(trace, part, turn, _alike(trace, ids))
    return trace


def _alike(trace: Trace, ids: Collection[int]) -> list[int]:
    """Return all locks made like some that are made alike."""
    one = trace.lock(next(iter(ids)))
    return [
        number
        for number, lock in trace.locks.items()
        if (lock.type, lock.label, lock.site) == (one.type, one.label, one.site)
    ]


def _turns(part: WakeUps) -> Integers:
    """Return for each wake-up the one that gave its giver the turn he passes on, -1 for none."""
    got, given = on_one_line((part.thread, part.got_ns), (part.giver, part.given_ns))
    order = np.argsort(got, kind="stable")
    at = np.searchsorted(got[order], given, side="right") - 1
    turn = order[np.maximum(at, 0)]
    known = (at >= 0) & (part.thread[turn] == part.giver)
    # A turn is passed on once, by the first wake-up after it.
    first = np.zeros(len(turn), dtype=np.bool_)
    first[np.unique(np.where(known, turn, len(turn)), return_index=True)[1]] = True
    return np.where(known & first, turn, -1)


def _is_lock(part: WakeUps, turn: Integers) -> bool:
    """Tell whether the woken wake the next one, and whoever is there."""
    count = len(turn)
    if count < LEAST_WAKEUPS or np.count_nonzero(turn >= 0) < LEAST_PASSED * count:
        return False
    if count <= MOST_USES * len(distinct(part.lock)[0]):
        return True
    pairs, which = distinct(part.giver, part.thread)
    most: dict[int, int] = {}
    for (giver, _), times in zip(pairs, np.bincount(which).tolist(), strict=True):
        most[giver] = max(most.get(giver, 0), times)
    return sum(most.values()) <= MOST_SAME * count


def _with_lock(trace: Trace, part: WakeUps, turn: Integers, signals: list[int]) -> Trace:
    """Return the trace with the turns at one lock, or several made alike."""
    instance = _instances(part, turn)
    used = [signals[at] for at in range(int(instance.max()) + 1)]
    lock = np.array(used, dtype=np.int64)[instance]
    waits = trace.waits.copy()
    mine = part.wait
    if len(used) == 1:  # then those that were never woken waited for it, too
        never = np.isin(waits["lock"], signals) & (waits["kind"] == WaitKind.COORDINATION)
        waits["lock"][never], waits["kind"][never] = used[0], WaitKind.CONTENTION
    waits["lock"][mine], waits["kind"][mine] = lock, WaitKind.CONTENTION
    waits["holder"][mine] = waits["holder_stack"][mine] = 0
    stacks, holds = _holds(trace, part, turn, lock)
    _note_what_ran(trace, waits, mine, holds)
    every = np.concatenate([trace.holds, holds])
    counters = trace.counters
    kept = counters[~np.isin(counters["lock"], signals)]
    mine = np.flatnonzero(np.isin(waits["lock"], used) & (waits["kind"] == WaitKind.CONTENTION))
    kind, name = f"one {trace.lock(used[0]).type} {MADE_BY_HAND}", _name(trace, part)
    locks = {
        number: replace(trace.locks[number], instance=at + 1, type=kind, name=name)
        for at, number in enumerate(used)
    }
    return replace(
        trace,
        locks={**trace.locks, **locks},
        stacks=stacks,
        wait_chunks=(waits,),
        hold_chunks=((0, every[np.argsort(every["end_ns"], kind="stable")]),),
        counter_chunks=(kept, _counters(waits[mine], holds)),
    )


def _name(trace: Trace, part: WakeUps) -> str:
    """Return the class whose method most wait in, else the name of the signals."""
    stacks, which = distinct(trace.waits["stack"][part.wait])
    frame = user_frame(trace.stack(stacks[int(np.bincount(which).argmax())][0]))
    owner = frame.function.rpartition(".")[0] if frame else ""
    return trace.lock(int(part.lock[0])).label if not owner or "<" in owner else owner


def _instances(part: WakeUps, turn: Integers) -> Integers:
    """Return which lock each wait was for, from 0: turns passed on are those of one lock.

    When the turn ends nothing says which lock is taken next. Where two were never in use at a time
    it is one.
    """
    root = np.where(turn < 0, np.arange(len(turn)), turn)
    while True:
        further = root[root]
        if (further == root).all():
            break
        root = further
    chains, which = np.unique(root, return_inverse=True)
    begin = np.full(len(chains), LAST_TIME_NS)
    np.minimum.at(begin, which, part.start_ns)
    end = np.zeros(len(chains), dtype=np.int64)
    np.maximum.at(end, which, part.given_ns)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    place = np.zeros(len(chains), dtype=np.int64)
    for chain in np.argsort(begin, kind="stable").tolist():
        while busy and busy[0][0] <= begin[chain]:
            heappush(free, heappop(busy)[1])
        place[chain] = heappop(free) if free else len(busy)
        heappush(busy, (int(end[chain]), int(place[chain])))
    return place[which]


def _holds(
    trace: Trace, part: WakeUps, turn: Integers, lock: Integers
) -> tuple[dict[int, tuple[int, ...]], Records]:
    """Return turns as holds, and the stacks of the trace with those that are new."""
    holds = np.zeros(len(turn), dtype=HOLD)
    begun = np.where(turn >= 0, part.got_ns[turn], _since(part))
    holds["start_ns"] = np.minimum(begun, part.given_ns)
    holds["end_ns"], holds["lock"] = part.given_ns, lock
    holds["thread"] = holds["release_thread"] = part.giver
    holds["waiters"] = 1
    taken = trace.waits["stack"][part.wait].astype(np.int64)
    # Where a turn began without a wait, the next waiter's way in stands for it.
    pairs, which = distinct(np.where(turn >= 0, taken[turn], taken), part.stack)
    known, stacks = {frames: number for number, frames in trace.stacks.items()}, dict(trace.stacks)
    site, stack = np.zeros((2, len(pairs)), dtype=np.uint32)
    for at, (one, other) in enumerate(pairs):
        site[at], frames = _outside(trace, stacks.get(one, ()), stacks.get(other, ()))
        stack[at] = known.setdefault(frames, max(stacks, default=0) + 1) if frames else 0
        if frames:
            stacks[int(stack[at])] = frames
    holds["site"], holds["stack"] = site[which], stack[which]
    return stacks, holds


def _since(part: WakeUps) -> Integers:
    """Return from when on the giver of each signal had the lock, if he did not wait for it."""
    (line,) = on_one_line((part.giver, part.given_ns))
    order = np.argsort(line, kind="stable")
    before = np.zeros(len(order), dtype=np.int64)
    same = part.giver[order][1:] == part.giver[order][:-1]
    before[order[1:][same]] = part.given_ns[order[:-1][same]]
    return np.maximum(part.start_ns, before)


def _outside(
    trace: Trace, taking: tuple[int, ...], releasing: tuple[int, ...]
) -> tuple[int, tuple[int, ...]]:
    """Return the frame and stack of the code that took and released it: below the lock's own."""
    places = {
        (frame.filename, frame.function): at
        for at, number in reversed([*enumerate(releasing)])
        if (frame := trace.frames.get(number)) is not None and is_user_code(frame.filename)
    }
    for number in taking:
        frame = trace.frames.get(number)
        if frame is not None and (frame.filename, frame.function) in places:
            return number, releasing[places[frame.filename, frame.function] :]
    return (taking[0] if taking else 0), releasing


def _note_what_ran(trace: Trace, waits: Records, mine: Integers, holds: Records) -> None:
    """Note for waits whose turn it was when they began, and what he was then seen to execute."""
    begun = waits["start_ns"][mine].astype(np.int64)
    lock = waits["lock"][mine].astype(np.int64)
    start, at = on_one_line(
        (holds["lock"].astype(np.int64), holds["start_ns"].astype(np.int64)), (lock, begun)
    )
    order = np.argsort(start, kind="stable")
    hold = order[np.maximum(np.searchsorted(start[order], at, side="right") - 1, 0)]
    inside = (holds["lock"][hold] == lock) & (holds["start_ns"][hold] <= begun)
    inside &= begun < holds["end_ns"][hold]
    mine, hold = mine[inside], hold[inside]
    waits["holder"][mine] = holds["thread"][hold]
    samples = trace.states[trace.states["stack"] != 0]
    if not len(samples) or not len(mine):
        return
    times = np.minimum(samples["time_ns"], LAST_TIME_NS).astype(np.int64)
    seen, begin, end = on_one_line(
        (samples["thread"].astype(np.int64), times),
        (holds["thread"][hold].astype(np.int64), holds["start_ns"][hold].astype(np.int64)),
        (holds["thread"][hold].astype(np.int64), holds["end_ns"][hold].astype(np.int64)),
    )
    order = np.argsort(seen, kind="stable")
    first = np.searchsorted(seen[order], begin)
    found = first < np.searchsorted(seen[order], end)
    waits["holder_stack"][mine[found]] = samples["stack"][order[first[found]]]


def _counters(waits: Records, holds: Records) -> Records:
    """Return totals of waits for a lock and of turns at it: of what is known, all."""
    users, which = distinct(
        np.concatenate([waits["lock"], holds["lock"]]).astype(np.int64),
        np.concatenate([waits["thread"], holds["thread"]]).astype(np.int64),
    )
    waiting, holding = which[: len(waits)], which[len(waits) :]
    ended = waits["outcome"] != Outcome.OPEN
    rows = np.zeros(len(users), dtype=COUNTER)
    rows["lock"], rows["thread"] = np.array(users, dtype=np.uint32).reshape(-1, 2).T
    length = np.maximum(waits["end_ns"], waits["start_ns"]) - waits["start_ns"]
    held = holds["end_ns"] - holds["start_ns"]
    np.add.at(rows["acquires"], waiting[waits["outcome"] == Outcome.ACQUIRED], 1)
    np.add.at(rows["timed_out"], waiting[waits["outcome"] == Outcome.TIMED_OUT], 1)
    np.add.at(rows["contended"], waiting[ended], 1)
    np.add.at(rows["wait_ns"], waiting[ended], length[ended])
    for name in ("spin_ns", "park_ns", "gil_ns", "spin_cpu_ns"):
        np.add.at(rows[name], waiting[ended], waits[name][ended])
    np.maximum.at(rows["max_wait_ns"], waiting[ended], length[ended])
    np.add.at(rows["hold_ns"], holding, held)
    np.maximum.at(rows["max_hold_ns"], holding, held)
    return rows
