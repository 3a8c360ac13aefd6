"""Another kind of lock in its place: cheaper hand-offs, another way to wait, no less serial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import SEMAPHORE, LockKind
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError
from contention_lab.simulate.remedies.remove import unlocked

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "lock=KIND"
KINDS: Final = ("test-and-set", "back-off", "ticket", "mcs", "parking", "adaptive")
"""Kinds that can stand in for any lock; the others need to know who reads, or which part."""
RWLOCK: Final = "rwlock"
"""A lock that readers share: the recording of another one does not say who only reads."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    if text == RWLOCK:
        return lambda batch: batch.with_all(lambda one: unlocked(one, target))
    if text not in KINDS:
        raise RemedyError(f"{FORM}: no lock {text!r}; one of: {', '.join(KINDS)}, {RWLOCK}")

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
    at_best={
        RWLOCK: "the trace does not tell reads from writes: shown is the most it can bring, to "
        "threads that all only read; with writes alone it brings nothing"
    },
)
