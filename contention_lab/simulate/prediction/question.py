"""What is asked: remedies as they are written, and what they do to a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import SEMAPHORE
from contention_lab.simulate.remedies import REMEDIES, RemedyError
from contention_lab.simulate.remedies.site import known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.remedies import Remedy
    from contention_lab.simulate.remedies.remedy import Change

OF_SEMAPHORES: Final = ("permits", "narrow", "move-out", "faster", "remove")
"""Remedies that make sense of what several threads do at a time."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy with its argument.

    Attributes
    ----------
    text
        As it is written: `narrow=worker:50`.
    remedy
        Which it is.
    change
        What it does to a batch.
    at_best
        Only the best that it can bring is known.
    """

    text: str
    remedy: Remedy
    change: Change
    at_best: bool = False

    def applied(self, batch: Batch) -> Batch:
        """Return the batch with the remedy applied."""
        return self.change(batch)


def fixes(target: Target, wanted: Sequence[str] = ()) -> tuple[Fix, ...]:
    """Return the remedies asked for, or all that apply.

    Parameters
    ----------
    target
        The lock.
    wanted
        As written; without any, all that apply to the lock.

    Raises
    ------
    RemedyError
        One is unknown, or makes no sense here: one line, with what would.
    """
    texts = [*wanted] or [*_suggested(target)]
    return tuple(_fix(text, target) for text in dict.fromkeys(texts))


def _fix(text: str, target: Target) -> Fix:
    kind, equals, argument = text.partition("=")
    remedy = REMEDIES.get(kind)
    if remedy is None:
        forms = ", ".join(remedy.form for remedy in REMEDIES.values())
        raise RemedyError(f"no remedy {text!r}; one of: {forms}; {known(target)}")
    if not equals and "=" in remedy.form:
        raise RemedyError(f"{text}: write {remedy.form}; {known(target)}")
    change, why = remedy.read(argument, target), remedy.at_best.get(argument)
    if why is not None:
        return Fix(text, replace(remedy, warning=why, lifts=True), change, at_best=True)
    return Fix(text, remedy, change)


def _suggested(target: Target) -> Iterator[str]:
    for remedy in REMEDIES.values():
        if target.kind == SEMAPHORE and remedy.kind not in OF_SEMAPHORES:
            continue
        for argument in remedy.suggest(target):
            yield f"{remedy.kind}={argument}" if argument else remedy.kind
