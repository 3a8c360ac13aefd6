"""The lock table as rows of a page: the worst locks one by one, the others as one sum.

It formats nothing: the template does. Order is the order of `analysis.lock_table`, worst first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.analysis import LockRow
    from contention_lab.trace import Lock

SHOWN: Final = 25
"""Locks with a row of their own."""


@dataclass(frozen=True, slots=True)
class LockLines:
    """Rows to show and what was left out."""

    rows: tuple[LockRow, ...]
    others: int
    """Locks without a row."""
    others_wait_s: float
    others_acquires: int


def lock_lines(table: Sequence[LockRow]) -> LockLines:
    """Split the table into the rows shown and the sum of the others."""
    shown, rest = table[:SHOWN], table[SHOWN:]
    return LockLines(
        tuple(shown),
        len(rest),
        sum(row.wait_s for row in rest),
        sum(row.acquires for row in rest),
    )


def lock_title(lock: Lock) -> str:
    """The lock's name as the page shows it."""
    return name(lock.label)


def lock_site(lock: Lock) -> str:
    """Where the lock was made: "server.py:12 in Server.__init__", or "unknown"."""
    if lock.site is None:
        return "unknown"
    site = lock.site
    return f"{short_path(site.filename)}:{site.line} in {name(site.function)}"
