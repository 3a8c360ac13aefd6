"""The interface of a remedy: how it is written, what it does to a batch, and what to beware of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target

    Change: TypeAlias = Callable[[Batch], Batch]


class RemedyError(Exception):
    """A remedy that makes no sense here: one line, why and what would."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that can be done about a lock.

    Attributes
    ----------
    kind
        Its name on the command line.
    form
        How it is written, with its argument.
    about
        What it is, in a line.
    warning
        What to beware of.
    lifts
        It lets threads do at the same time what they did in turns under the lock. Else it only
        makes the lock cheaper: what is serial stays serial.
    read
        From its argument and the lock to what it does to a batch; raises `RemedyError`.
    suggest
        The arguments worth trying with a lock, "" for none; empty where it does not apply.
    at_best
        Arguments of which a trace says only what they can bring at best, and why that is so.
    """

    kind: str
    form: str
    about: str
    warning: str
    lifts: bool
    read: Callable[[str, Target], Change]
    suggest: Callable[[Target], Sequence[str]]
    at_best: Mapping[str, str] = field(default_factory=dict)


def nothing_more(text: str, form: str) -> None:
    """Raise `RemedyError` if a remedy that takes no argument has one."""
    if text:
        raise RemedyError(f"{form} takes no argument")


def whole_number(text: str, form: str, least: int = 2, most: int = 4096) -> int:
    """Return the number a remedy is given.

    Raises
    ------
    RemedyError
        It is none, or out of range.
    """
    if not text.isdecimal() or not least <= int(text) <= most:
        raise RemedyError(f"{form}: give a number from {least} to {most}, not {text!r}")
    return int(text)


def share_of(text: str, form: str) -> float:
    """Return a share, written as 30, 30% or 0.3.

    Raises
    ------
    RemedyError
        It is none.
    """
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    value = value / 100.0 if text.endswith("%") or value > 1.0 else value
    if not 0.0 < value <= 1.0:
        raise RemedyError(f"{form}: give a share such as 30%, not {text!r}")
    return value
