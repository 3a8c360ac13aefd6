"""Finding `pool-self-starvation`: workers wait for tasks that need a worker of the same pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.crews import crews
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_STARVED_WORKERS,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
)
from contention_lab.diagnosis.wording import names, percent
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.analysis.crews import Crew
    from contention_lab.analysis.pools import Pool
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Party

KIND: Final = "pool-self-starvation"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each pool it is true of.

    It is true if, for a tenth of the run or more, nearly all workers of the pool wait for results
    of the pool itself, while tasks that its own workers have submitted wait for a worker. Results
    are those of futures it has made, or, where several are waited for at once, those that its
    workers wait for in `concurrent.futures`. Waits that a timeout ended, or that nobody has ended,
    count. If all workers wait for futures of the pool until the end, nothing needs to be seen of
    the tasks: they have not begun.

    A pool that the program has made itself has no entry. Of its threads it is true if all that ever
    fulfil a result (an event or a condition each) wait for one themselves as long (see
    `analysis.crews`).

    Severity is the share of the run for which that was so. No lock is at fault.
    """
    for pool in file.pools:
        if (found := _of(file, pool)) is not None:
            yield found
    for crew in crews([one.case for one in file.awaited]):
        if (found := _of_crew(file, crew)) is not None:
            yield found


def _of_crew(file: CaseFile, crew: Crew) -> Finding | None:
    wall_s, case = file.program.wall_s, crew.case
    share = crew.starved.total_ns / 1e9 / wall_s if wall_s else 0.0
    if share < LEAST_WAIT_SHARE or crew.starved.total_ns < LEAST_WAIT_S * 1e9:
        return None
    mine = np.isin(case.thread, crew.workers)
    covered = crew.starved.covered_ns(case.start_ns[mine], case.end_ns[mine])
    waited_s = float(covered.sum()) / 1e9
    victims = places(file.trace, summed(case.stack[mine], covered), waited_s)
    evidence = {
        "workers": len(crew.workers),
        "starved_s": crew.starved.total_ns / 1e9,
        "wait_s": float((case.end_ns - case.start_ns)[mine].sum()) / 1e9,
    }
    return _finding(len(crew.workers), victims, share, "all of them at once", evidence)


def _of(file: CaseFile, pool: Pool) -> Finding | None:
    wall_s = file.program.wall_s
    own = [
        (case, np.isin(case.thread, pool.workers))
        for case in file.coordination
        if case.purpose is Purpose.RESULT and _may_be_own(case, pool)
    ]
    own = [(case, mine) for case, mine in own if mine.any()]
    if not own or not wall_s:
        return None
    start, end, thread, stack = (
        np.concatenate([getattr(case, name)[mine] for case, mine in own])
        for name in ("start_ns", "end_ns", "thread", "stack")
    )
    starved = _most_waiting(start, end, thread, len(pool.workers))
    if not _hangs(pool, own):
        starved = starved.without(starved.without(_queued_by_workers(file, pool)))
    share = starved.total_ns / 1e9 / wall_s
    if share < LEAST_WAIT_SHARE:
        return None
    covered = starved.covered_ns(start, end)
    waited_s = float(covered.sum()) / 1e9
    victims = places(file.trace, summed(stack, covered), waited_s)
    evidence = {
        "workers": len(pool.workers),
        "starved_s": starved.total_ns / 1e9,
        "wait_s": float((end - start).sum()) / 1e9,
        "queued_tasks": len(pool.queued_start_ns),
    }
    return _finding(len(pool.workers), victims, share, "nearly all of them at once", evidence)


def _finding(
    workers: int,
    victims: tuple[Party, ...],
    share: float,
    how: str,
    evidence: Mapping[str, float | int | None],
) -> Finding:
    severity = min(share, LARGEST_SEVERITY)
    at_once = f", {how}" if workers > 1 else ""
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{_workers(workers)} in {names(victims, most=2)} for results of the same "
            f"pool{at_once}, for {percent(share)} of the run: hardly any worker is left for the "
            "tasks they wait for."
        ),
        lock=None,
        victims=victims,
        culprits=victims,
        evidence=evidence,
        remedies=(
            Remedy(
                "second-pool",
                "Run the tasks that others wait for in a pool of their own.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
            Remedy(
                "do-not-block",
                "Let no task wait for another: return the futures, or continue in a callback.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )


def _workers(count: int) -> str:
    return (
        "The only worker of a pool waits" if count == 1 else f"The {count} workers of a pool wait"
    )


def _may_be_own(case: CoordinationCase, pool: Pool) -> bool:
    """Tell whether a case may be about results of a pool: its own entry, or several futures."""
    return pool.results in case.locks or not case.lock.type.startswith("concurrent.")


def _hangs(pool: Pool, own: Sequence[tuple[CoordinationCase, npt.NDArray[np.bool_]]]) -> bool:
    """Tell whether all workers still wait at the end, for futures of the pool for certain."""
    hanging = {
        thread
        for case, mine in own
        if pool.results in case.locks
        for thread in case.thread[mine & (case.outcome == Outcome.OPEN)].tolist()
    }
    return hanging == {*pool.workers}


def _most_waiting(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    thread: npt.NDArray[np.int64],
    workers: int,
) -> Windows:
    """Return when nearly all workers waited."""
    spans = [Windows.union(start[thread == one], end[thread == one]) for one in np.unique(thread)]
    times = np.concatenate([np.concatenate([one.start_ns, one.end_ns]) for one in spans])
    step = np.concatenate([np.repeat([1, -1], len(one.start_ns)) for one in spans])
    order = np.lexsort((step, times))
    times, waiting = times[order], np.cumsum(step[order])
    most = waiting >= max(1.0, LEAST_STARVED_WORKERS * workers)
    until = np.append(times[1:], times[-1:])
    return Windows.union(times[most], until[most])


def _queued_by_workers(file: CaseFile, pool: Pool) -> Windows:
    """Return when tasks that workers had submitted waited for a worker."""
    inside = {
        stack
        for stack in np.unique(pool.queued_stack).tolist()
        if any(
            frame.function.endswith("_WorkItem.run") or frame.function == "_worker"
            for frame in file.trace.stack(stack)
        )
    }
    mine = np.isin(pool.queued_stack, list(inside))
    return Windows.union(pool.queued_start_ns[mine], pool.queued_end_ns[mine])
