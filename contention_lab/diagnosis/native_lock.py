"""Finding `external-lock` of native code: threads wait for a lock inside a library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.native_identity import INTERPRETER
from contention_lab.analysis.native_nesting import (
    anybody_waits_s,
    gil_waits_behind_s,
    idle_share,
    path_share,
    waited_within,
)
from contention_lab.diagnosis.finding import AccusedLock, Finding, Party, Remedy
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_KNOWN,
    LEAST_NATIVE_IDLE,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOSTLY,
)
from contention_lab.diagnosis.wording import counted, duration, names, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contention_lab.analysis.native_locks import NativeLockRow, NativeParty
    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = "external-lock"
PARTIES: Final = 10
"""Places named, at most."""


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock of native code that it is true of.

    It is true if all of these are:

    - it is a lock (a mutex, an rwlock, a spinlock, or a wait in the kernel or the interpreter that
      a function on the way there calls a lock). Conditions, barriers, semaphores and sleeping
      pools of workers are waited at for work; the GIL is not among native locks;
    - two threads or more use it, and those of them that run Python code of the program wait for it
      for a tenth of their time or more;
    - for most of that time it is known which thread had it;
    - a tenth of the cores or more is idle meanwhile: else who waits could not run anyway.

    A wait by a thread that holds a lock of Python's for which others wait is told once. Where it is
    most of what that lock costs, the lock is acquitted: the native one is behind it, and as severe.
    Else it is left to the finding about that lock, and counts for nothing here.

    Where whoever waits has the GIL, the others wait for that: this is the lock's doing, too.

    Severity is the share of these threads' time, but not more than the machine has left to give;
    `path_rank` makes it that of the critical path where it is known.
    """
    return (finding for row in file.native_locks if (finding := _of_lock(file, row)))


def share_of_gil_waits(file: CaseFile) -> float:
    """Return the share of the waiting for the GIL of threads that wait for a native lock with it.

    They do not run Python: no other use of the GIL would make room for more.
    """
    waited_s = sum(one.wait_s for one in file.gil.threads) if file.gil else 0.0
    behind_s = sum(
        gil_waits_behind_s(file.trace, row.events)
        for row in file.native_locks
        if row.identity.is_contention and row.with_gil_s
    )
    return min(1.0, behind_s / waited_s) if waited_s else 0.0


def path_shares(file: CaseFile) -> dict[AccusedLock, float]:
    """Return the share of the critical path that waits for each native lock, where it is known."""
    shares = {
        _accused(row): path_share(file.trace, file.path, row.events)
        for row in file.native_locks
        if row.identity.is_contention
    }
    return {lock: share for lock, share in shares.items() if share is not None}


@dataclass(frozen=True, slots=True)
class Nested:
    """What a native lock costs by way of Python's locks.

    Attributes
    ----------
    acquits
        Locks whose cost it mostly is.
    severity
        Share of the time of the users of the worst of them.
    told_s
        Waits for it that are a smaller part of another lock's cost.
    """

    acquits: tuple[AccusedLock, ...]
    severity: float
    told_s: float


def _of_lock(file: CaseFile, row: NativeLockRow) -> Finding | None:
    in_python = tuple(party for party in row.victims if party.site is not None)
    wait_s = sum(party.seconds for party in in_python)
    if (
        not row.identity.is_contention
        or len(row.users) < 2
        or wait_s < LEAST_WAIT_S
        or row.blamed_s < LEAST_KNOWN * row.wait_s
    ):
        return None
    threads = {
        time.thread.id: time.wall_s for time in file.times if time.thread.native_id in row.users
    }
    wall_s = sum(threads.values())
    nested = _nested(file, row)
    own = (wait_s - nested.told_s) / wall_s if wall_s else 0.0
    gil_s = gil_waits_behind_s(file.trace, row.events)
    share = max(
        own * row.blamed_s / row.wait_s + (gil_s / wall_s if wall_s else 0.0), nested.severity
    )
    idle = idle_share(file.trace, row.events, file.program.cores, file.times)
    if share < LEAST_WAIT_SHARE or idle < LEAST_NATIVE_IDLE:
        return None
    severity = min(share, idle, LARGEST_SEVERITY)
    victims, culprits = _parties(in_python), _parties(row.holders)
    return Finding(
        kind=KIND,
        severity=severity,
        summary=_summary(row, file, own, gil_s, victims, culprits, nested),
        lock=_accused(row),
        victims=victims,
        culprits=culprits,
        evidence={
            "wait_s": row.wait_s,
            "spin_s": row.spin_s,
            "park_s": row.wait_s - row.spin_s,
            "longest_wait_s": row.longest_s,
            "waits": row.waits,
            "blamed_s": row.blamed_s,
            "wait_share": own,
            "threads": len(row.users),
            "idle_cores_share": idle,
            **({"waited_with_the_gil_s": row.with_gil_s} if row.with_gil_s else {}),
            **({"gil_waits_behind_s": gil_s} if gil_s else {}),
            **({"within_other_locks_s": nested.told_s} if nested.told_s else {}),
        },
        remedies=_remedies(row, culprits, severity),
        acquits=nested.acquits,
    )


def _nested(file: CaseFile, row: NativeLockRow) -> Nested:
    acquits, severity, told_s = [], 0.0, 0.0
    every = hold_spans(file.trace)
    for at, case in enumerate(file.cases):
        hold, cost = file.charged(at)
        holds = every.where(hold)
        within = waited_within(row.events, holds)
        whole = float(cost.sum())
        if not within.any() or not whole:
            continue
        share = np.divide(within, holds.length_ns, out=np.zeros(len(within)), where=within > 0)
        passed_on = float((cost * share).sum()) / whole
        if passed_on >= MOSTLY:
            acquits.append(case.lock)
            severity = max(severity, case.blamed_wait_share * passed_on)
        else:
            told_s += float(within.sum()) / 1e9
    return Nested(tuple(acquits), severity, told_s)


def _parties(parties: Sequence[NativeParty]) -> tuple[Party, ...]:
    whole = sum(party.seconds for party in parties)
    return tuple(
        Party(party.site, party.stack, party.seconds, party.seconds / whole if whole else 0.0)
        for party in parties[:PARTIES]
    )


def _main(parties: Sequence[Party]) -> Sequence[Party]:
    """Return those worth a word: the first, and others with a tenth of the time or more."""
    return [*parties[:1], *(one for one in parties[1:] if one.share >= LEAST_WAIT_SHARE)]


def _accused(row: NativeLockRow) -> AccusedLock:
    return AccusedLock(
        row.label,
        row.identity.type_name,
        row.site,
        row.locks,
        row.identity.native_library,
    )


def _summary(
    row: NativeLockRow,
    file: CaseFile,
    share: float,
    gil_s: float,
    victims: Sequence[Party],
    culprits: Sequence[Party],
    nested: Nested,
) -> str:
    waited_s = anybody_waits_s(row.events)
    waiting = max(1, round(row.wait_s / waited_s)) if waited_s else 1
    waiting = min(waiting, len(row.users) - 1)
    wall = file.program.wall_s
    when = f"For {percent(waited_s / wall)} of the run, " if wall and waited_s < 0.8 * wall else ""
    more = ""
    if nested.acquits:
        more = f"; that is most of what `{nested.acquits[0].name}` costs"
    elif gil_s >= LEAST_WAIT_SHARE * row.wait_s:
        more = f"; others wait {duration(gil_s)} for the GIL that they keep meanwhile"
    return (
        f"{when}{waiting} of {counted(len(row.users), 'thread')} wait{'s' * (waiting == 1)} in "
        f"{names(_main(victims), most=2)} for {_described(row)} while {_holder(culprits)} has it: "
        f"{percent(share)} of their time, {duration(row.wait_s)} in all{_split(row)}{more}."
    )


def _split(row: NativeLockRow) -> str:
    """Say how much of the waiting was spinning, where any is known to have been."""
    if not row.spin_s:
        return ""
    park_s = row.wait_s - row.spin_s
    if park_s <= 0.0:
        return ", all of it spinning"
    return f" ({duration(row.spin_s)} spinning, {duration(park_s)} parked)"


def _described(row: NativeLockRow) -> str:
    if row.identity.by_place:
        return f"{row.identity.text}, {row.site.place}" if row.site else row.identity.text
    many = f", {row.locks} of them" if row.locks > 1 else ""
    return f"{row.identity.text} (taken in `{row.identity.function}`{many})"


def _holder(culprits: Sequence[Party]) -> str:
    if not culprits:
        return "another thread"
    if culprits[0].site is not None:
        return names(culprits, most=1)
    known = (frame.function for frame in culprits[0].stack if frame.function[:1] not in "~+")
    native = next(known, "")
    return f"a thread in `{native}`" if native else "a thread that runs no Python"


def _remedies(row: NativeLockRow, culprits: Sequence[Party], severity: float) -> tuple[Remedy, ...]:
    high = 1.0 / (1.0 - severity)
    library = row.identity.native_library
    if library == INTERPRETER:
        text = "Give each thread an object of its own, and merge them at the end."
        return (Remedy("shard", text, None, 1.0, high),)
    return (
        Remedy(
            "shard",
            f"Do not share what the lock of {library} guards: give each thread a handle, "
            "connection or buffer of its own.",
            None,
            1.0,
            high,
        ),
        Remedy(
            "narrow",
            f"Make the calls of {library} in {names(culprits, most=1)} shorter, or fewer and "
            "larger ones where each takes the lock anew.",
            None,
            1.0,
            high,
        ),
    )
