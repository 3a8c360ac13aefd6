"""Finding `busy-polling`: threads look again and again instead of waiting to be woken."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.polling import Looks, vain_gets, vain_tries, vain_waits
from contention_lab.diagnosis.finding import AccusedLock, Finding, Remedy
from contention_lab.diagnosis.retries import do_that_anyway, sleep_between
from contention_lab.diagnosis.sampled_parties import seen_at, stack_samples, waited_at
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_LOOKS_IN_VAIN,
    LEAST_POLL_OF_CPU,
    LEAST_POLL_RATIO,
    LEAST_TRIES_IN_VAIN,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LONGEST_POLL_S,
    MOST_FOUND,
    MOST_HELD_OF_TRIES,
)
from contention_lab.diagnosis.wording import duration, lock_and_origin, names, percent
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Party
    from contention_lab.trace import Trace

KIND: Final = "busy-polling"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock, queue, event or condition that it is true of.

    It is true if threads look at it a hundred times or more in vain (or twenty times, and sleep for
    most of the time between), and one of these holds:

    - they try to take a lock without blocking, and spend a tenth of its users' time or more
      between the first failed try and the one that succeeds, although for most of that time
      nobody holds it: they sleep on, or do something else, long after it has become free. If they
      do the same at the same place when they got the lock, they do not wait for it: whoever finds
      a round taken leaves it to others and comes back for the next one;
    - they wait with timeouts of a few milliseconds at most, nearly always in vain, or look into a
      queue twenty times as often as anybody puts something in; and the CPU time of the threads
      that do so is a fifth or more of the process's.

    Loops of failed tries that keep the holder from running are a spin collapse, not this. Looking
    at a plain variable leaves no trace. Severity is the share of the users' time that is lost, or
    the share of the wall time that is burnt on a CPU.
    """
    for looks in _by_site(file, vain_tries(file.trace)):
        finding = _of_tries(file, looks)
        if finding is not None:
            yield finding
    timed = vain_waits(file.trace, LONGEST_POLL_S, MOST_FOUND)
    for looks in _by_site(file, (*timed, *vain_gets(file.trace, LEAST_POLL_RATIO))):
        finding = _of_looks(file, looks)
        if finding is not None:
            yield finding


def pollers(trace: Trace) -> set[int]:
    """Return the threads that look in vain, or wait with tiny timeouts, again and again."""
    every = (
        *vain_waits(trace, LONGEST_POLL_S, MOST_FOUND),
        *vain_gets(trace, LEAST_POLL_RATIO),
    )
    return {
        thread
        for looks in every
        for thread in looks.threads
        if looks.count >= LEAST_LOOKS_IN_VAIN * len(looks.threads)
    }


def _by_site(file: CaseFile, every: Sequence[Looks]) -> list[tuple[Looks, ...]]:
    """Group looks by the place where their locks were made."""
    groups: dict[object, list[Looks]] = defaultdict(list)
    for looks in every:
        lock = file.trace.lock(looks.lock)
        groups[lock.type, lock.label, lock.site].append(looks)
    return [tuple(group) for group in groups.values()]


def _of_tries(file: CaseFile, looks: tuple[Looks, ...]) -> Finding | None:
    ids = {one.lock for one in looks}
    case = next((case for case in file.cases if ids & {row.lock.id for row in case.rows}), None)
    wait_s, count = sum(one.wait_s for one in looks), sum(one.count for one in looks)
    if case is None or not case.user_wall_s or wait_s < LEAST_WAIT_S:
        return None
    lost_share = wait_s * (1.0 - case.blamed_share) / case.user_wall_s
    sleep = sleep_between(file.trace, file.activity, ids)
    if (
        count < (LEAST_TRIES_IN_VAIN if sleep else LEAST_LOOKS_IN_VAIN)
        or lost_share < LEAST_WAIT_SHARE
        or case.blamed_share > MOST_HELD_OF_TRIES
        or wait_s < 0.5 * case.total("wait_s")
    ):
        return None
    if do_that_anyway(file.trace, file.activity, ids):
        return None
    severity = min(lost_share, LARGEST_SEVERITY)
    where = names(case.victims, most=2)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"Threads that find {lock_and_origin(case.lock)} taken try again later in {where}, "
            f"{count} times in vain: that takes them {percent(wait_s / case.user_wall_s)} of their "
            f"time, although it is held only during {percent(case.blamed_share)} of that; "
            "a blocking acquire would wake them as soon as it is free."
        ),
        lock=case.lock,
        victims=case.victims,
        culprits=case.victims,
        evidence={**case.evidence(), "looks_in_vain": count, "looking_s": wait_s},
        remedies=(_wait_instead(case.lock.name, severity),),
    )


def _of_looks(file: CaseFile, looks: tuple[Looks, ...]) -> Finding | None:
    program = file.program
    count = sum(one.count for one in looks)
    threads = {thread for one in looks for thread in one.threads}
    cpu_s = sum(time.cpu_s for time in file.times if time.thread.id in threads)
    if count < LEAST_LOOKS_IN_VAIN * len(threads) or not program.wall_s:
        return None
    if cpu_s < max(LEAST_WAIT_S, LEAST_POLL_OF_CPU * program.cpu_s) or not _nothing_else(
        file, threads, looks
    ):
        return None
    lock = _accused(file, looks)
    parties = _parties(file, looks, threads, cpu_s)
    severity = min(cpu_s / program.wall_s, LARGEST_SEVERITY)
    timed = [one.usual_s for one in looks if one.usual_s]
    each = f", {duration(float(np.median(timed)))} at a time" if timed else ""
    several = "s" * (len(threads) != 1)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{len(threads)} thread{several} look{'s' * (not several)} at {lock_and_origin(lock)} "
            f"{count} times in vain in {names(parties, most=2)}{each}, and "
            f"burn{'s' * (not several)} {percent(cpu_s / program.cpu_s)} of the CPU time doing so; "
            "a wait without a timeout would be woken when there is something."
        ),
        lock=lock,
        victims=parties,
        culprits=parties,
        evidence={
            "looks_in_vain": count,
            "polling_threads": len(threads),
            "polling_cpu_s": cpu_s,
            "looking_s": sum(one.wait_s for one in looks),
        },
        remedies=(_wait_instead(lock.name, severity),),
    )


def _nothing_else(file: CaseFile, threads: set[int], looks: tuple[Looks, ...]) -> bool:
    """Tell whether each of the threads looked in vain often enough for its CPU time to be that.

    A look costs a few microseconds to a few dozen; a thread that looks seldom works in between.
    """
    counted: dict[int, float] = defaultdict(float)
    for one in looks:
        for thread in one.threads:
            counted[thread] += one.count / len(one.threads)
    times = {time.thread.id: time.cpu_s for time in file.times}
    return all(times.get(thread, 0.0) <= 200e-6 * counted[thread] for thread in threads)


def _accused(file: CaseFile, looks: tuple[Looks, ...]) -> AccusedLock:
    lock = file.trace.lock(looks[0].lock)
    return AccusedLock(lock.label, lock.type, lock.site, len({one.lock for one in looks}))


def _parties(
    file: CaseFile, looks: tuple[Looks, ...], threads: set[int], total_s: float
) -> tuple[Party, ...]:
    """Return where the threads looked: where they waited, or where they were seen."""
    waits = file.trace.wait_columns
    mine = np.isin(waits["lock"], [one.lock for one in looks]) & np.isin(
        waits["thread"], list(threads)
    )
    mine &= waits["outcome"] == Outcome.TIMED_OUT
    if mine.any():
        return waited_at(file.trace, waits[mine])
    samples = stack_samples(file.trace)
    return seen_at(file.trace, samples, samples["stack"] != 0, total_s, threads)


def _wait_instead(name: str, severity: float) -> Remedy:
    return Remedy(
        "wait",
        f"Wait for `{name}` without a timeout (`acquire()`, `get()`, `wait()` and a notify or set "
        "by whoever changes it).",
        None,
        1.0,
        1.0 / (1.0 - severity),
    )
