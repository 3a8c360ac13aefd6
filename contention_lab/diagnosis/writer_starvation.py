"""Finding `writer-starvation`: readers come and go in turn, and the writer never gets in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.collected import Collected, collected
from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.lightswitch import Switched, switched
from contention_lab.analysis.permits import permits
from contention_lab.analysis.sites import is_user_code
from contention_lab.analysis.sums import summed
from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.coordination_parties import places, waiting_places
from contention_lab.diagnosis.finding import Finding, Party, Remedy
from contention_lab.diagnosis.lock_case import accused_lock
from contention_lab.diagnosis.sampled_parties import waited_at
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_COVERED,
    LEAST_ENTRIES,
    LEAST_READERS,
    LEAST_STARVED_SHARE,
    LEAST_WAIT_S,
    MOSTLY,
)
from contention_lab.diagnosis.wording import (
    duration,
    lock_and_origin,
    name,
    names,
    percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.analysis.overtaking import Visits
    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock
    from contention_lab.trace import Frame

KIND: Final = "writer-starvation"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of.

    It is true of a condition if all of these are:

    - a thread waits on it for a fifth of the run or more;
    - meanwhile, two or more other threads take its lock at two lines in turn, and so come in and
      go out; there is hardly a moment when none of them is inside;
    - they come in many times more often than a wait succeeds: they overtake who waits.

    It is true of a semaphore, which readers take one permit of and a writer several, if a thread
    waits as long for a permit while it has others, and two or more threads with one permit at a
    time, one of which always has one, take permits many times meanwhile. And of an event that says
    that nobody is inside: if a thread waits as long for it, hardly ever with success, while two or
    more others use it many times, which without waking anybody can only be to clear it.

    And of a lock, or a semaphore's only permit, that the first to come in takes and the last to go
    out releases (a light switch):
    if a thread waits as long for it while it is held from thread to thread, and the others take
    the lock that they always take it under several times.

    The readers are the culprits: what they do inside. Severity is the share of the run that a
    writer waits.
    """
    for one in file.awaited:
        if one.case.purpose is Purpose.CONDITION and (found := of_condition(file, one)):
            yield found
        if one.case.purpose is Purpose.EVENT and (found := of_event(file, one)):
            yield found
    for number, case in enumerate(file.cases):
        if "Semaphore" in case.lock.type:
            for one_writer in collected(*file.spans(number)):
                if (found := _of_collector(file, case.lock, one_writer)) is not None:
                    yield found
            if permits(file.trace, [row.lock.id for row in case.rows]).most > 1:
                continue
        locks = frozenset(row.lock.id for row in case.rows)
        for switch in switched(file.trace, locks):
            if (found := _of_switch(file, case.lock, case.victims, switch)) is not None:
                yield found


def of_condition(file: CaseFile, awaited: Awaited) -> Finding | None:
    """Return the finding if it is true of a condition."""
    case, wall_s = awaited.case, file.program.wall_s
    waited_s = case.windows.total_ns / 1e9
    if waited_s < max(LEAST_WAIT_S, LEAST_STARVED_SHARE * wall_s):
        return None
    seen = awaited.visits
    if seen is None or not _is_starved(seen):
        return None
    readers = {*seen.thread.tolist()}
    inside = Windows.union(seen.start_ns, seen.end_ns)
    doing = file.activity.stacks(readers, inside)
    culprits = places(file.trace, doing, waited_s) if doing else _callers(file, seen)
    return _finding(
        file,
        accused_lock(case.lock, len(case.locks)),
        waiting_places(file.trace, case),
        culprits,
        waited_s,
        len(readers),
        seen.entered,
        seen.satisfied,
        file.trace.frames.get(seen.entry),
        awaited.evidence() | {"covered_share": seen.covered_share},
    )


def _is_starved(seen: Visits) -> bool:
    readers = len({*seen.thread.tolist()})
    return (
        readers >= LEAST_READERS
        and seen.covered_share >= LEAST_COVERED
        and seen.entered >= LEAST_ENTRIES * readers
        and seen.entered >= LEAST_ENTRIES * readers * seen.satisfied
    )


def of_event(file: CaseFile, awaited: Awaited) -> Finding | None:
    """Return the finding if it is true of an event."""
    case, wall_s = awaited.case, file.program.wall_s
    waited_s = case.windows.total_ns / 1e9
    if waited_s < max(LEAST_WAIT_S, LEAST_STARVED_SHARE * wall_s) or case.woken_share >= MOSTLY:
        return None
    counters = file.trace.counters
    used = np.isin(counters["lock"], [*case.locks]) & (counters["acquires"] > 0)
    used &= ~np.isin(counters["thread"], [*case.waiters])
    readers = {*counters["thread"][used].tolist()}
    entered = int(counters["acquires"][used].sum())
    satisfied = int(np.count_nonzero(case.waker != 0))
    if len(readers) < LEAST_READERS or entered < LEAST_ENTRIES * len(readers) * (1 + satisfied):
        return None
    return _finding(
        file,
        accused_lock(case.lock, len(case.locks)),
        waiting_places(file.trace, case),
        places(file.trace, file.activity.stacks(readers, case.windows), waited_s),
        waited_s,
        len(readers),
        entered,
        satisfied,
        None,
        awaited.evidence(),
    )


def _of_collector(file: CaseFile, lock: AccusedLock, writer: Collected) -> Finding | None:
    waited_s = writer.waited.total_ns / 1e9
    readers = len(writer.readers)
    if (
        waited_s < max(LEAST_WAIT_S, LEAST_STARVED_SHARE * file.program.wall_s)
        or readers < LEAST_READERS
        or writer.covered_share < LEAST_COVERED
        or writer.entered < LEAST_ENTRIES * readers * max(1, writer.satisfied)
    ):
        return None
    waits, columns = file.trace.wait_columns[writer.index], file.trace.hold_columns
    held = (columns["lock"] == writer.lock) & np.isin(columns["thread"], writer.readers)
    entries, times = np.unique(columns["site"][held], return_counts=True)
    doing = file.activity.stacks(writer.readers, writer.inside) or summed(
        columns["stack"][held], np.ones(int(held.sum()))
    )
    return _finding(
        file,
        lock,
        waited_at(file.trace, waits),
        places(file.trace, doing, waited_s),
        waited_s,
        readers,
        writer.entered,
        writer.satisfied,
        file.trace.frames.get(int(entries[times.argmax()])) if len(entries) else None,
        {"covered_share": writer.covered_share},
    )


def _of_switch(
    file: CaseFile, lock: AccusedLock, victims: tuple[Party, ...], switch: Switched
) -> Finding | None:
    waited_s, wall_s = switch.waited.total_ns / 1e9, file.program.wall_s
    # Passages are counted over the whole run; so many of them were while the writer waited.
    meanwhile = switch.passages * min(1.0, waited_s / wall_s) if wall_s else 0.0
    got_in = max(1, switch.holds, switch.satisfied)
    if (
        waited_s < max(LEAST_WAIT_S, LEAST_STARVED_SHARE * wall_s)
        or len(switch.readers) < LEAST_READERS
        or switch.covered_share < LEAST_COVERED
        or meanwhile < 2 * LEAST_ENTRIES * len(switch.readers) * got_in
    ):
        return None
    doing = file.activity.stacks(switch.readers, switch.waited) or switch.holder_stacks
    return _finding(
        file,
        lock,
        victims,
        places(file.trace, doing, waited_s),
        waited_s,
        len(switch.readers),
        switch.passages // 2,
        switch.satisfied,
        file.trace.frames.get(switch.entry),
        {"covered_share": switch.covered_share, "holds": switch.holds},
    )


def _finding(
    file: CaseFile,
    lock: AccusedLock,
    victims: tuple[Party, ...],
    culprits: tuple[Party, ...],
    waited_s: float,
    readers: int,
    entered: int,
    satisfied: int,
    entry: Frame | None,
    evidence: Mapping[str, float | int | None],
) -> Finding:
    share = waited_s / file.program.wall_s if file.program.wall_s else 0.0
    severity = min(share, LARGEST_SEVERITY)
    comes_in = f"`{name(entry)}`" if entry is not None else "the way in"
    got_in = {0: "never gets in", 1: "gets in once"}.get(satisfied, f"gets in {satisfied} times")
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"A writer waits in {names(victims, most=1)} for {duration(waited_s)} "
            f"({percent(share)} of the run) and {got_in}, while {readers} readers pass "
            f"{comes_in} {entered} times under {lock_and_origin(lock)}, and one of them is always "
            "inside: let new readers wait while a writer does."
        ),
        lock=lock,
        victims=victims,
        culprits=culprits,
        evidence={
            "waited_s": waited_s,
            "readers": readers,
            "entries": entered,
            "successful_waits": satisfied,
            **evidence,
        },
        remedies=(
            Remedy(
                "writers-first",
                f"Let {comes_in} wait while a writer waits, so that readers leave and the writer "
                "gets its turn.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
            Remedy(
                "snapshot",
                "Let readers use an immutable copy that the writer replaces: then neither waits.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )


def _callers(file: CaseFile, seen: Visits) -> tuple[Party, ...]:
    """Return the code that comes in and goes out, where nothing was seen of what is done inside."""
    passing = {
        (frame.filename, frame.function)
        for line in (seen.entry, seen.exit)
        if (frame := file.trace.frames.get(line)) is not None
    }
    counts: dict[Frame, int] = {}
    stacks: dict[Frame, tuple[Frame, ...]] = {}
    for number in seen.stacks:
        stack = file.trace.stack(number)
        for frame in stack:
            if is_user_code(frame.filename) and (frame.filename, frame.function) not in passing:
                counts[frame] = counts.get(frame, 0) + 1
                stacks[frame] = stack
                break
    whole = sum(counts.values())
    waited_s = seen.waited.total_ns / 1e9
    return tuple(
        Party(frame, stacks[frame], waited_s * count / whole, count / whole)
        for frame, count in sorted(counts.items(), key=lambda item: -item[1])
    )
