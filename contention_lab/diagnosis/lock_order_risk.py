"""Finding `lock-order-risk`: locks are taken in orders that can end in a deadlock."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.sites import user_frame
from contention_lab.diagnosis.finding import Finding, Party, Remedy
from contention_lab.diagnosis.thresholds import RISK_SEVERITY
from contention_lab.diagnosis.wording import lock_name, name, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.analysis.lock_order import Inversion, Step
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock
    from contention_lab.trace import Frame

KIND: Final = "lock-order-risk"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each ring of locks of which it is true.

    It is true if the recording has seen a ring of locks in which each was held while the next one
    was taken (waiting for it if need be), each step by another thread, and no two steps with any
    lock held in common; and if user code did each step. Nobody needs to have waited. Of rings
    through locks made at the same places one is told; none of which a deadlock has happened.

    Severity is next to nothing: it costs no time until the day it hangs.
    """
    happened = [
        {file.locks.get(link.lock) for link in one.links}
        for one in file.deadlocks
        if not one.is_alone
    ]
    for inversion in file.order:
        steps = inversion.steps
        locks = [file.locks.get(step.held) for step in steps]
        if set(locks) in happened or any(user_frame(step.stack) is None for step in steps):
            continue
        named = sorted({lock for lock in locks if lock is not None}, key=file.first_made)
        yield Finding(
            kind=KIND,
            severity=RISK_SEVERITY,
            summary=summary(file, inversion),
            lock=named[0] if named else None,
            victims=_joined([_victim(step, len(steps)) for step in steps]),
            culprits=_joined([_culprit(step, len(steps)) for step in steps]),
            evidence={
                "locks": len(steps),
                "threads": len({step.thread for step in steps}),
                "with_timeout": sum(step.has_timeout for step in steps),
            },
            remedies=(_order(named, inversion),),
        )


def _joined(parties: list[Party]) -> tuple[Party, ...]:
    """Return each place once, with the shares of its parties."""
    shares: dict[Frame | None, float] = defaultdict(float)
    first: dict[Frame | None, Party] = {}
    for party in parties:
        shares[party.site] += party.share
        first.setdefault(party.site, party)
    return tuple(replace(party, share=shares[site]) for site, party in first.items())


def _victim(step: Step, steps: int) -> Party:
    return Party(user_frame(step.stack), step.stack, 0.0, 1.0 / steps)


def _culprit(step: Step, steps: int) -> Party:
    held = step.held_site or user_frame(step.stack)
    return Party(held, step.stack, 0.0, 1.0 / steps, acquired=held)


def summary(file: CaseFile, inversion: Inversion) -> str:
    """Return the finding as a sentence."""
    told = [*dict.fromkeys(_step(file, step) for step in inversion.steps)]
    (where, taken, held), rest = told[0], told[1:]
    steps = f"{where} takes {taken} while it holds {held}"
    if not rest:
        steps += ", and the other way round"
    elif len(rest) == 1 and rest[0][1:] == (held, taken):
        steps += f", and {rest[0][0]} the other way round"
    else:
        steps += f", {rest[0][0]} {rest[0][1]} while it holds {rest[0][2]}"
        steps += ", and so on" if len(rest) > 1 else ""
    until = "until a timeout" if any(step.has_timeout for step in inversion.steps) else "for ever"
    tasks = all(file.trace.thread(step.thread).is_task for step in inversion.steps)
    return (
        f"{steps}: {'tasks' if tasks else 'threads'} that do so at the same time wait {until}, "
        "which has not happened here; take them in one order everywhere."
    )


def _step(file: CaseFile, step: Step) -> tuple[str, str, str]:
    """Write where a lock is taken, which one, and what is held meanwhile."""
    held, taken = file.locks.get(step.held), file.locks.get(step.taken)
    names = [f"`{lock.name}`" if lock else "a lock" for lock in (taken, held)]
    return place(user_frame(step.stack)), names[0], "another one" if held == taken else names[1]


def _order(named: list[AccusedLock], inversion: Inversion) -> Remedy:
    last = user_frame(inversion.steps[-1].stack)
    code = f"`{name(last)}`" if last else "this code"
    if len(named) > 1:
        first = " before ".join(lock_name(lock) for lock in named)
        text = f"Take {first} everywhere, or let {code} release the one before it takes the other."
    else:
        text = (
            "Take the locks of several objects in one order, as that of their numbers, or let "
            f"{code} release the one before it takes the other."
        )
    return Remedy("order", text, None, 1.0, 1.0)
