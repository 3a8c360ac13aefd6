"""The lock table as rows of a page: one row per place and name, the worst first, the rest summed.

Locks made at one place under one name (one per graph, one per connection) are one row; their
counts and times are sums, their maxima maxima. Quantiles do not add up, so a row of several locks
has none. It formats nothing: the template does.
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
"""Rows of their own."""


@dataclass(frozen=True, slots=True)
class LockLine:
    """One lock, or all locks of one name made at one place. Times in seconds.

    Of locks that were sampled and not recorded, what cannot be known is None.
    """

    lock: Lock
    """The worst of them."""
    locks: int
    acquires: int | None
    contended: int | None
    timed_out: int
    failed_tries: int
    wait_s: float | None
    spin_s: float | None
    park_s: float | None
    gil_s: float | None
    hold_s: float | None
    utilisation: float | None
    """Of the busiest one."""
    wait_p50_s: float | None
    wait_p99_s: float | None
    wait_max_s: float | None
    hold_max_s: float | None
    threads: int
    """At most: of the lock that most threads used."""
    open_waits: int
    missing_waits: int
    waited_share: str = ""
    """Where it was sampled: in which share of the time or of the samples a thread waited."""


@dataclass(frozen=True, slots=True)
class LockLines:
    """Rows to show and what was left out."""

    rows: tuple[LockLine, ...]
    others: int
    """Locks without a row."""
    others_wait_s: float
    others_acquires: int | None

    @property
    def wait_s(self) -> float:
        """All waiting for locks."""
        return sum(row.wait_s or 0.0 for row in self.rows) + self.others_wait_s

    @property
    def spin_s(self) -> float:
        """All spinning in the rows shown."""
        return sum(row.spin_s or 0.0 for row in self.rows)


def lock_lines(table: Sequence[LockRow]) -> LockLines:
    """Group the rows of `analysis.lock_table` and split them into those shown and the rest."""
    groups: dict[tuple[object, ...], list[LockRow]] = {}
    for row in table:
        groups.setdefault((row.lock.label, row.lock.type, row.lock.site), []).append(row)
    lines = sorted(
        (_line(members) for members in groups.values()), key=lambda line: -(line.wait_s or 0.0)
    )  # stable: equal ones stay in the order of the table
    shown, rest = lines[:SHOWN], lines[SHOWN:]
    return LockLines(
        tuple(shown),
        sum(line.locks for line in rest),
        sum(line.wait_s or 0.0 for line in rest),
        sum(line.acquires or 0 for line in rest),
    )


def _line(rows: Sequence[LockRow]) -> LockLine:
    worst = rows[0]
    alone = len(rows) == 1
    return LockLine(
        lock=worst.lock,
        locks=len(rows),
        acquires=sum(row.acquires for row in rows),
        contended=sum(row.contended for row in rows),
        timed_out=sum(row.timed_out for row in rows),
        failed_tries=sum(row.failed_tries for row in rows),
        wait_s=sum(row.wait_s for row in rows),
        spin_s=sum(row.spin_s for row in rows),
        park_s=sum(row.park_s for row in rows),
        gil_s=sum(row.gil_s for row in rows),
        hold_s=sum(row.hold_s for row in rows),
        utilisation=max(row.utilisation for row in rows),
        wait_p50_s=worst.wait_p50_s if alone else None,
        wait_p99_s=worst.wait_p99_s if alone else None,
        wait_max_s=max(row.wait_max_s for row in rows),
        hold_max_s=max(row.hold_max_s for row in rows),
        threads=max(row.threads for row in rows),
        open_waits=sum(row.open_waits for row in rows),
        missing_waits=sum(row.missing_waits for row in rows),
    )


def lock_title(lock: Lock) -> str:
    """The lock's name as the page shows it."""
    return name(lock.label)


def lock_place(lock: Lock) -> str:
    """File and line where the lock was made; empty where that is not known."""
    return "" if lock.site is None else f"{short_path(lock.site.filename)}:{lock.site.line}"


def lock_site(lock: Lock) -> str:
    """Where the lock was made: "server.py:12 in Server.__init__", or "unknown place"."""
    if lock.site is None:
        return "an unknown place"
    return f"{lock_place(lock)} in {name(lock.site.function)}"
