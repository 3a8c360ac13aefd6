"""Finding `lock-order-deadlock`: threads waited for each other's locks, and none could go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis.sites import user_frame
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.standstill import standstills
from contention_lab.diagnosis.thresholds import LARGEST_SEVERITY, LEAST_WAIT_S
from contention_lab.diagnosis.wording import duration, enumeration, lock_name, name, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contention_lab.analysis.wait_for import Link
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.standstill import Standstill
    from contention_lab.trace import Thread

KIND: Final = "lock-order-deadlock"
LONGEST: Final = 250
"""Characters of a summary, above which it is not read."""


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each set of locks of which it is true.

    It is true if, at some moment of the recording, each of two or more threads waited for a lock
    that the next one held (or to join the next one), and the last for one that the first held. At
    least one of these waits must have ended without the lock: by a timeout, an interrupt, or with
    the recording. Unless the threads still stood at the end, they did so for a hundredth of a
    second or more: a shorter time is that of an attempt that was meant to give up.

    Severity is the share of the wall time during which threads stood so; where they did at the end
    of the recording, all of it, since they would have for ever.
    """
    rings = [one for one in file.deadlocks if not one.is_alone]
    for still in standstills(file.trace, rings, file.locks):
        if still.lasted_s < LEAST_WAIT_S and not still.is_open:
            continue
        severity = share_of_wall(file, still)
        named = [lock for lock in still.locks if lock is not None]
        yield Finding(
            kind=KIND,
            severity=severity,
            summary=summary(file, still),
            lock=still.first,
            victims=still.victims,
            culprits=still.culprits,
            evidence={
                "deadlocks": len(still.deadlocks),
                "threads": len(still.deadlocks[0].links),
                "lasted_s": still.lasted_s,
                "wait_s": still.waited_s,
                "open": int(still.is_open),
                "path_share": file.path_share(named) or None,
            },
            remedies=remedies(file, still),
            acquits=tuple(dict.fromkeys(named)) if explains(file, still) else (),
        )


def share_of_wall(file: CaseFile, still: Standstill) -> float:
    """Return the share of the wall time during which threads stood still."""
    if still.is_open or not file.program.wall_s:
        return LARGEST_SEVERITY
    return min(still.lasted_s / file.program.wall_s, LARGEST_SEVERITY)


def explains(file: CaseFile, still: Standstill) -> bool:
    """Tell whether most of the waiting for the locks was in deadlocks."""
    rows = [row for row in file.rows if file.locks.get(row.lock.id) in still.locks]
    return still.is_open or still.waited_s >= 0.5 * sum(row.wait_s for row in rows)


def summary(file: CaseFile, still: Standstill) -> str:
    """Return the finding as a sentence; without the names of threads if it gets too long."""
    sentence = _sentence(file, still, named=True)
    return sentence if len(sentence) <= LONGEST else _sentence(file, still, named=False)


def _sentence(file: CaseFile, still: Standstill, *, named: bool) -> str:
    links = still.deadlocks[0].links
    steps: dict[tuple[str, str, str], list[Thread]] = {}
    for i, link in enumerate(links):
        step = _step(file, link, links[i - 1])
        steps.setdefault(step, []).append(file.trace.thread(link.thread))
    (where, lock, held), waiting = next(iter(steps.items()))
    is_one_place = len({place for place, _, _ in steps}) == 1
    at = "" if is_one_place else f" in {where}"
    own = "" if not held else f" while {'they hold' if len(waiting) > 1 else 'it holds'} {held}"
    told = (
        f"{_who(waiting, named)} {'each wait' if len(waiting) > 1 else 'waits'}{at} for {lock}{own}"
    )
    for (other_where, other_lock, other_held), others in [*steps.items()][1:2]:
        there = "" if is_one_place else f" in {other_where}"
        back = (other_lock, other_held) == (held, lock)
        how = " the other way round" if back else f" for {other_lock}"
        how += f" while it holds {other_held}" if other_held and not back else ""
        told += (
            f", {'' if len(steps) > 2 else 'and '}{_who(others, named, first=False)}{there}{how}"
        )
    if len(steps) > 2:
        told += f", and so on in a ring of {len(links)}"
    often = f"{len(still.deadlocks)} times, " if len(still.deadlocks) > 1 else ""
    ended = "to the end of the recording" if still.is_open else "until one of them gave up"
    return (
        f"Deadlock{f' in {where}' if is_one_place else ''}: {told}, {often}"
        f"{duration(still.lasted_s)} in all, {ended}; {_advice(still)}."
    )


def _advice(still: Standstill) -> str:
    if None in still.locks:
        return "join threads with no lock held that they need"
    return "take them in one order everywhere"


def _who(threads: Sequence[Thread], named: bool, *, first: bool = True) -> str:
    if named and len(threads) < 3:
        return who(threads)
    kind = "task" if all(thread.is_task for thread in threads) else "thread"
    if len(threads) == 1:
        return f"one {kind}" if first else "another"
    return f"{len(threads)} {kind}s"


def who(threads: Sequence[Thread]) -> str:
    """Write threads or tasks with their names."""
    kind = "task" if all(thread.is_task for thread in threads) else "thread"
    plural = "s" * (len(threads) > 1)
    return f"{kind}{plural} {enumeration([thread.label for thread in threads])}"


def _step(file: CaseFile, link: Link, before: Link) -> tuple[str, str, str]:
    """Write where a thread waits, what for, and what it holds that the one before waits for."""
    where = user_frame(file.trace.stack(int(file.trace.wait_columns["stack"][link.wait])))
    lock, held = file.locks.get(link.lock), file.locks.get(before.lock)
    what = f"`{lock.name}`" if lock else f"thread {file.trace.lock(link.lock).name} to end"
    if held is None:
        return place(where), what, ""
    return place(where), what, "another one" if held == lock else f"`{held.name}`"


def most_gain(file: CaseFile, still: Standstill) -> float:
    """Return how many times as fast the program can be at most without the standstill."""
    wall_s = file.program.wall_s
    share = still.lasted_s / wall_s if wall_s else 0.0
    return 1.0 / (1.0 - min(share, LARGEST_SEVERITY))


def remedies(file: CaseFile, still: Standstill) -> tuple[Remedy, ...]:
    """Return what takes the ring apart."""
    high = most_gain(file, still)
    named = sorted({lock for lock in still.locks if lock is not None}, key=file.first_made)
    code = enumeration([f"`{name(party.code)}`" for party in still.culprits if party.code][:3])
    if None in still.locks:
        locks = enumeration([lock_name(lock) for lock in named])
        text = f"Let go of {locks} before the thread that needs it is joined; look at {code}."
        return (Remedy("join-later", text, None, 1.0, high),)
    if len(named) > 1:
        text = f"Take {' before '.join(lock_name(lock) for lock in named)} everywhere"
    else:
        text = "Take the locks of several objects in one order everywhere, as that of their numbers"
    return (
        Remedy("order", f"{text}; look at {code or 'the stacks'}.", None, 1.0, high),
        Remedy(
            "release-first",
            f"Or, in {code or 'one place'}, let go of the one lock before the other is taken.",
            None,
            1.0,
            high,
        ),
    )
