"""Batches of a pool that wait for one long task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places
from contention_lab.diagnosis.thresholds import LEAST_WAIT_SHARE, LONGEST_TASK, MOSTLY
from contention_lab.diagnosis.uneven import Uneven

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.analysis.pools import Pool
    from contention_lab.diagnosis.case_file import CaseFile

GAP_NS = 2_000_000
"""Tasks with a shorter gap between them are of one batch."""


def found(file: CaseFile) -> Iterator[Uneven]:
    """Yield the pools of which it is true.

    A batch is a time in which at least one task of the pool ran, until somebody has the results and
    submits more. It counts if threads outside of
    the pool wait for results for most of it, all workers that take part were busy at some moment,
    and the task that ends it worked at least twice as long as its tasks do in the middle (without
    what they wait themselves), and for most of that time. What equal tasks would save is the
    batch's length less its work divided by these workers; of all batches together it must be a
    tenth of the run.
    """
    for pool in file.pools:
        uneven = _of(file, pool)
        if uneven is not None:
            yield uneven


def _of(file: CaseFile, pool: Pool) -> Uneven | None:
    if len(pool.workers) < 2 or not file.program.wall_s:
        return None
    waited = [case for case in file.coordination if case.purpose is Purpose.RESULT]
    outside = [
        (case, mine) for case in waited if (mine := ~np.isin(case.thread, pool.workers)).any()
    ]
    if not outside:
        return None
    waiting = Windows.union(
        np.concatenate([case.start_ns[mine] for case, mine in outside]),
        np.concatenate([case.end_ns[mine] for case, mine in outside]),
    )
    batches = _batches(pool, np.concatenate([case.end_ns[mine] for case, mine in outside]))
    busy = _busy_ns(file, pool)
    saved_ns, tails, stragglers = 0.0, [], set[int]()
    for start, end in zip(batches.start_ns.tolist(), batches.end_ns.tolist(), strict=True):
        waits = int(waiting.covered_ns(np.array([start]), np.array([end]))[0])
        chosen = (pool.start_ns >= start) & (pool.end_ns <= end)
        length = busy[chosen]
        workers = np.unique(pool.worker[chosen])
        last = int(np.argmax(pool.end_ns[chosen]))
        if (
            waits < MOSTLY * (end - start)
            or len(workers) < 2
            or _most_at_once(pool.start_ns[chosen], pool.end_ns[chosen]) < len(workers)
            or length[last] < LONGEST_TASK * np.median(length)
            or length[last] < MOSTLY * (pool.end_ns - pool.start_ns)[chosen][last]
        ):
            continue
        taken = (pool.end_ns - pool.start_ns)[chosen]
        parallel = float(len(workers))
        if file.program.cores:
            window = Windows(np.array([start]), np.array([end]))
            running = file.activity.doing(workers.tolist(), window).running
            parallel = min(parallel, file.program.cores / running if running else parallel)
        saved_ns += max(0.0, end - start - float(taken.sum()) / parallel)
        worker = int(pool.worker[chosen][last])
        others = pool.end_ns[chosen][pool.worker[chosen] != worker]
        tails.append((int(others.max(initial=start)), end))
        stragglers.add(worker)
    saved_share = saved_ns / 1e9 / file.program.wall_s
    if saved_share < LEAST_WAIT_SHARE:
        return None
    tail = Windows.union(*(np.array(column) for column in zip(*tails, strict=True)))
    weights: dict[int, float] = {}
    for case, mine in outside:
        length_ns = (case.end_ns - case.start_ns)[mine]
        for stack, weight in summed(case.stack[mine], length_ns).items():
            weights[stack] = weights.get(stack, 0.0) + weight
    tail_s = tail.total_ns / 1e9
    return Uneven(
        saved_share=saved_share,
        who=f"{len(tails)} batch{'es' * (len(tails) > 1)} of {len(pool.workers)} workers wait",
        straggler="one long task",
        victims=places(file.trace, weights, sum(weights.values()) / 1e9),
        culprits=places(file.trace, file.activity.stacks(stragglers, tail), tail_s),
        evidence={
            "batches": len(tails),
            "workers": len(pool.workers),
            "tasks": len(pool.start_ns),
            "one_task_left_s": tail_s,
            "longest_task_s": float((pool.end_ns - pool.start_ns).max()) / 1e9,
            "median_task_s": float(np.median(pool.end_ns - pool.start_ns)) / 1e9,
        },
    )


def _batches(pool: Pool, got_ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Windows:
    """Return when tasks ran, without gaps; one after which somebody had a result is none of them.

    Unless a task waited for a worker then: so it was of the same batch.
    """
    ran, queued = Windows.union(pool.start_ns, pool.end_ns), pool.queued
    got_ns = np.sort(got_ns)
    gap_start, gap_end = ran.end_ns[:-1], ran.start_ns[1:]
    got = np.searchsorted(got_ns, gap_end) > np.searchsorted(got_ns, gap_start - GAP_NS)
    ends = (gap_end - gap_start > GAP_NS) | (got & ~queued.contains(gap_start))
    first = np.append(True, ends)[: len(ran.start_ns)]
    last = np.append(ends, True)[: len(ran.start_ns)]
    return Windows(ran.start_ns[first], ran.end_ns[last])


def _busy_ns(file: CaseFile, pool: Pool) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return how long each task worked: not what it waited itself."""
    busy = pool.end_ns - pool.start_ns
    for worker in pool.workers:
        mine = pool.worker == worker
        waiting = file.activity.waiting(worker)
        busy[mine] -= waiting.covered_ns(pool.start_ns[mine], pool.end_ns[mine])
    return busy


def _most_at_once(
    start_ns: np.ndarray[tuple[int], np.dtype[np.int64]],
    end_ns: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> int:
    times = np.concatenate([start_ns, end_ns])
    step = np.repeat([1, -1], len(start_ns))
    order = np.lexsort((step, times))
    return int(np.cumsum(step[order]).max(initial=0))
