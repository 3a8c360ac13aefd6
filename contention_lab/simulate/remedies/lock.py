"""Another kind of lock in its place: cheaper hand-offs, another way to wait, no less serial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import SEMAPHORE, LockKind
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "lock=KIND"
KINDS: Final = ("test-and-set", "back-off", "ticket", "mcs", "parking", "adaptive")
"""Kinds that can stand in for any lock; the others need to know who reads, or which part."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    if text not in KINDS:
        raise RemedyError(f"{FORM}: no lock {text!r}; one of: {', '.join(KINDS)}")

    def change(batch: Batch) -> Batch:
        kept = batch.kinds[target.ids[0]].gil_first and text in ("test-and-set", "back-off")
        return batch.with_kind(target.ids, LockKind(text, kept))

    return change


def suggest(target: Target) -> list[str]:
    """Return a mutex for what spins, and one that spins while it helps for what sleeps."""
    if target.kind == SEMAPHORE:
        return []
    return ["adaptive"] if target.kind == "parking" else ["parking"]


REMEDY: Final = Remedy(
    kind="lock",
    form=FORM,
    about="another kind of lock in its place",
    warning="what is serial stays serial: it only makes taking turns cheaper",
    lifts=False,
    read=read,
    suggest=suggest,
)
