"""Threads started at one place and joined at another, one of which has much more to do."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places, waiting_places
from contention_lab.diagnosis.thresholds import LEAST_WAIT_SHARE, LONGEST_TASK
from contention_lab.diagnosis.uneven import Uneven

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.trace import Frame, Thread


def found(file: CaseFile) -> Iterator[Uneven]:
    """Yield the groups of threads of which it is true.

    A group is made at one place and ends while somebody joins. It counts what each thread was busy,
    outside of recorded waits. It is true if the busiest was so at least twice as long as the one in
    the middle, and is the last to end; and if its surplus over the mean, during which the joining
    thread waits for it, is a tenth of the run or more.
    """
    joins = [case for case in file.coordination if case.purpose is Purpose.THREAD]
    if not joins or not file.program.wall_s:
        return
    joined = Windows.union(
        np.concatenate([case.start_ns for case in joins]),
        np.concatenate([case.end_ns for case in joins]),
    )
    for group in _groups(file).values():
        ended = [thread for thread in group if thread.end_ns]
        if len(ended) < 2 or len(ended) < len(group):
            continue
        life = {thread.id: Windows.union(*_edges(file, thread)) for thread in ended}
        busy = {number: file.activity.busy_ns(number, window) for number, window in life.items()}
        last = max(ended, key=lambda thread: thread.end_ns)
        mean, middle = float(np.mean([*busy.values()])), float(np.median([*busy.values()]))
        surplus = busy[last.id] - mean
        before = sorted(thread.end_ns for thread in ended)[-2]
        tail = Windows.union(np.array([before]), np.array([last.end_ns]))
        alone = int(joined.covered_ns(tail.start_ns, tail.end_ns).sum())
        saved_share = min(surplus, alone) / 1e9 / file.program.wall_s
        if saved_share < LEAST_WAIT_SHARE or busy[last.id] < LONGEST_TASK * middle:
            continue
        yield Uneven(
            saved_share=saved_share,
            who="The thread that joins them waits",
            straggler=f"`{last.label}`",
            victims=waiting_places(file.trace, joins[0]),
            culprits=places(file.trace, file.activity.stacks((last.id,), tail), alone / 1e9),
            evidence={
                "threads": len(ended),
                "busiest_s": busy[last.id] / 1e9,
                "mean_busy_s": mean / 1e9,
                "one_thread_left_s": alone / 1e9,
            },
        )


def _groups(file: CaseFile) -> Mapping[tuple[Frame, ...], list[Thread]]:
    """Return threads by where they were made: each sets an event of its own when it starts."""
    made = {
        lock.id: lock.site
        for lock in file.trace.locks.values()
        if lock.type.endswith(" in Thread") and lock.site is not None
    }
    counters = file.trace.counters
    chosen = np.isin(counters["lock"], list(made))
    makers = {thread.id for thread in file.trace.threads.values() if thread.is_main}
    groups: dict[tuple[Frame, ...], list[Thread]] = defaultdict(list)
    seen = set[int]()
    for lock, thread in counters[["lock", "thread"]][chosen].tolist():
        known = file.trace.thread(thread)
        if thread not in seen and thread not in makers and not known.is_task:
            seen.add(thread)
            groups[(made[lock],)].append(known)
    return groups


def _edges(
    file: CaseFile, thread: Thread
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    start, end = file.activity.life(thread.id)
    return np.array([start]), np.array([end])
