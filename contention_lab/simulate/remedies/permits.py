"""More permits of a semaphore: more threads do at a time what it lets only so many do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import SEMAPHORE, LockKind
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError, whole_number

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "permits=N"
TIMES: Final = 2
"""So many times as many permits are suggested."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    if target.kind != SEMAPHORE:
        raise RemedyError(f"{FORM}: `{target.label}` is no semaphore that threads wait for")
    count = whole_number(text, FORM, least=1)

    def change(batch: Batch) -> Batch:
        return batch.with_kind(target.ids, LockKind(SEMAPHORE, permits=count))

    return change


def suggest(target: Target) -> list[str]:
    """Return twice as many."""
    return [str(TIMES * target.permits)] if target.kind == SEMAPHORE else []


REMEDY: Final = Remedy(
    kind="permits",
    form=FORM,
    about="a semaphore with N permits",
    warning="it guards what there are only so many of: connections, memory, a server's patience; "
    "with more at a time each may take longer, which is not simulated",
    lifts=True,
    read=read,
    suggest=suggest,
)
