"""Threads started at one place and joined at another, one of which has much more to do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places, waiting_places
from contention_lab.diagnosis.thresholds import LEAST_WAIT_SHARE, LONGEST_TASK
from contention_lab.diagnosis.uneven import Uneven
from contention_lab.diagnosis.wording import enumeration
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.trace import Frame, Thread

NAMED = 2
"""Stragglers called by their names, at most."""


@dataclass(frozen=True, slots=True)
class Round:
    """Threads of one group that ran beside one another, one of which was joined late.

    Attributes
    ----------
    last
        That one.
    tail
        When it was the only one left.
    saved_ns
        What equal shares of the work would save.
    busiest_ns, mean_ns
        How long it was busy, and all of them on average.
    """

    last: Thread
    tail: tuple[int, int]
    saved_ns: float
    busiest_ns: int
    mean_ns: float


def found(file: CaseFile) -> Iterator[Uneven]:
    """Yield the groups of threads of which it is true.

    A group is made at one place to run one function. Its threads that live beside one another are a
    round, which counts if the busiest thread, outside of recorded waits, was so at least twice as
    long as the one in the middle, and is the last to end, and is waited for; and if what equal
    shares would save is more than its threads waited for something on average: threads that wait
    for one another that long end late for other reasons. What is saved is its surplus over the
    mean, but no more than somebody joins it for while it is the only one left, or the cores could
    do; of all rounds together it must be a tenth of the run.
    """
    joins = [case for case in file.coordination if case.purpose is Purpose.THREAD]
    if not joins or not file.program.wall_s:
        return
    joined = Windows.union(
        np.concatenate([case.start_ns for case in joins]),
        np.concatenate([case.end_ns for case in joins]),
    )
    exact = _joined_at(file, joins)
    noticed = {one.id: one.end_ns for one in file.trace.threads.values() if one.end_ns}
    ends = noticed | exact
    for group in _groups(file).values():
        threads = sorted(group, key=lambda thread: thread.start_ns)
        rounds = [
            uneven
            for one in _rounds(file, threads, ends)
            if (uneven := _of(file, one, ends, joined)) is not None and uneven.last.id in exact
        ]
        saved_share = sum(one.saved_ns for one in rounds) / 1e9 / file.program.wall_s
        if saved_share < LEAST_WAIT_SHARE:
            continue
        tails = Windows.union(
            *(np.array(edge) for edge in zip(*(one.tail for one in rounds), strict=True))
        )
        alone_s = tails.total_ns / 1e9
        last = list(dict.fromkeys(f"`{one.last.label}`" for one in rounds))
        many = f"one of them, {len(rounds)} times,"
        yield Uneven(
            saved_share=saved_share,
            who="The thread that joins them waits",
            straggler=enumeration(last) if len(last) <= NAMED else many,
            victims=waiting_places(file.trace, joins[0]),
            culprits=places(
                file.trace, file.activity.stacks([one.last.id for one in rounds], tails), alone_s
            ),
            evidence={
                "threads": len(group),
                "rounds": len(rounds),
                "busiest_s": sum(one.busiest_ns for one in rounds) / 1e9,
                "mean_busy_s": sum(one.mean_ns for one in rounds) / 1e9,
                "one_thread_left_s": alone_s,
            },
        )


def _of(
    file: CaseFile, threads: Sequence[Thread], ends: Mapping[int, int], joined: Windows
) -> Round | None:
    if len(threads) < 2 or not all(thread.id in ends for thread in threads):
        return None
    begin = {thread.id: file.activity.life(thread.id)[0] for thread in threads}
    life = {
        number: Windows.union(np.array([start]), np.array([ends[number]]))
        for number, start in begin.items()
    }
    busy = {number: file.activity.busy_ns(number, window) for number, window in life.items()}
    last = max(threads, key=lambda thread: ends[thread.id])
    mean, middle = float(np.mean([*busy.values()])), float(np.median([*busy.values()]))
    if busy[last.id] < LONGEST_TASK * middle:
        return None
    before, until = sorted(ends[thread.id] for thread in threads)[-2:]
    tail = Windows.union(np.array([before]), np.array([until]))
    alone = int(joined.covered_ns(tail.start_ns, tail.end_ns).sum())
    saved = min(busy[last.id] - mean, float(alone))
    if file.program.cores:
        length = until - min(begin.values())
        used = sum(thread.cpu_ns for thread in threads)
        saved = min(saved, length - used / file.program.cores)
    waited = float(np.mean([life[number].total_ns - busy[number] for number in busy]))
    if saved <= 0.0 or waited > saved:
        return None
    return Round(last, (before, until), saved, busy[last.id], mean)


def _joined_at(file: CaseFile, joins: Sequence[CoordinationCase]) -> dict[int, int]:
    """Return when threads that somebody waited for ended.

    The end of a thread that nobody waits for is noticed when the recorder looks the next time.
    """
    ends: dict[int, int] = {}
    names: dict[str, list[Thread]] = defaultdict(list)
    for thread in file.trace.threads.values():
        names[thread.name].append(thread)
    for case in joins:
        joined = case.outcome == Outcome.ACQUIRED
        for lock, end in zip(
            case.lock_id[joined].tolist(), case.end_ns[joined].tolist(), strict=True
        ):
            known = names.get(file.trace.lock(lock).name, [])
            if len(known) == 1 and known[0].start_ns < end:
                ends[known[0].id] = min(end, known[0].end_ns or end)
    return ends


def _rounds(
    file: CaseFile, threads: Sequence[Thread], ends: Mapping[int, int]
) -> Iterator[list[Thread]]:
    """Yield threads that live beside one another; `threads` in the order of their start."""
    together: list[Thread] = []
    until = 0
    for thread in threads:
        start, end = file.activity.life(thread.id)
        if together and start >= until:
            yield together
            together = []
        together.append(thread)
        until = max(until, ends.get(thread.id, end))
    if together:
        yield together


def _groups(file: CaseFile) -> Mapping[tuple[Frame | str, ...], list[Thread]]:
    """Return threads by where they were made and what they run.

    Each sets an event of its own when it starts. It is called after its function unless its maker
    has named it; those that have been named are told apart by their places alone.
    """
    made = {
        lock.id: lock.site
        for lock in file.trace.locks.values()
        if lock.type.endswith(" in Thread") and lock.site is not None
    }
    counters = file.trace.counters
    chosen = np.isin(counters["lock"], list(made))
    makers = {thread.id for thread in file.trace.threads.values() if thread.is_main}
    groups: dict[tuple[Frame | str, ...], list[Thread]] = defaultdict(list)
    seen = set[int]()
    for lock, thread in counters[["lock", "thread"]][chosen].tolist():
        known = file.trace.thread(thread)
        if thread not in seen and thread not in makers and not known.is_task:
            seen.add(thread)
            groups[made[lock], _function(known)].append(known)
    return groups


def _function(thread: Thread) -> str:
    """Return the function that a thread's default name gives, `Thread-3 (work)`; empty if none."""
    _, opened, function = thread.name.partition(" (")
    return function.rstrip(")") if opened else ""
