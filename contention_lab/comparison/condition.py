"""Conditions that fail a build: `wait>+20%`, `p99[Catalog._lock]>5ms`, `wall>+1s`.

A quantity, the lock it is of in brackets (all locks without them), and a limit: `+` for growth, in
percent or in the quantity's unit, without it for the figure itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contention_lab.comparison.compared import LEAST_S
from contention_lab.comparison.observation import QUANTITIES, WALL
from contention_lab.diagnosis.wording import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.comparison.compared import Comparison
    from contention_lab.comparison.difference import Difference

_COUNTS: Final = frozenset({"contended", "acquires"})
_SCALES: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
MOST_NAMED: Final = 5
_FORM: Final = re.compile(
    r"\s*(?P<quantity>[\w-]+)\s*(?:\[(?P<lock>[^\]]+)\])?\s*>\s*"
    r"(?P<grows>\+?)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|s|ms|us|µs)?\s*"
)


class ConditionError(ValueError):
    """A condition that cannot be read; one line: what, why, what to type."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a condition.

    Attributes
    ----------
    condition
        As it was typed.
    failed
        It is violated.
    reason
        A sentence with the figures.
    """

    condition: str
    failed: bool
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"condition": self.condition, "failed": self.failed, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Condition:
    """A limit that a comparison must keep.

    Attributes
    ----------
    text
        As it was typed.
    quantity
        One of `QUANTITIES`, or `wall`.
    lock
        Text in the lock's label; empty for all locks together.
    limit
        The largest value: a share for growth in percent, else seconds or a number.
    grows, relative
        It limits the growth; it does so as a share of what was before.
    """

    text: str
    quantity: str
    lock: str
    limit: float
    grows: bool
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition.

        Raises
        ------
        ConditionError
            It is none.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ConditionError(
                f"{text!r} is no condition: type one like 'wait>+20%', 'p99[Catalog]>5ms'"
            )
        quantity, unit = found["quantity"], found["unit"] or ""
        if quantity not in (*QUANTITIES, WALL):
            known = ", ".join((*QUANTITIES, WALL))
            raise ConditionError(f"{text!r}: no quantity {quantity!r}; choose from {known}")
        if quantity == WALL and found["lock"]:
            raise ConditionError(f"{text!r}: wall is of the whole program; leave out the lock")
        relative = unit == "%"
        if relative and not found["grows"]:
            raise ConditionError(f"{text!r}: a percentage limits growth: '{quantity}>+...%'")
        if not relative and (quantity in _COUNTS) == bool(unit):
            needed = "no unit" if quantity in _COUNTS else "a unit: s, ms or us"
            raise ConditionError(f"{text!r}: {quantity} takes {needed}")
        scale = 0.01 if relative else _SCALES.get(unit, 1.0)
        limit = float(found["number"]) * scale
        lock = (found["lock"] or "").strip()
        return cls(text.strip(), quantity, lock, limit, bool(found["grows"]), relative)

    def check(self, comparison: Comparison) -> Outcome:
        """Return what becomes of it.

        Growth that may be chance, as far as repeats show, does not fail; nor does growth of times
        by less than a millisecond.

        Raises
        ------
        ConditionError
            It is about a lock that neither side has.
        """
        found = (
            comparison.of_lock(self.lock, self.quantity)
            if self.lock
            else comparison.totals[self.quantity]
        )
        if found is None:
            raise ConditionError(
                f"{self.text!r}: no lock of either side has {self.lock!r} in its name; "
                f"there are {_few(comparison.labels())}"
            )
        before, after = self._figure(found.before), self._figure(found.after)
        said = f"{self.quantity} {before} before, {after} after"
        if not self.grows:
            return Outcome(self.text, found.after > self.limit, said)
        if found.in_times:
            said += f" ({found.in_times})"
        if not self._exceeds(found):
            return Outcome(self.text, False, said)
        if found.may_be_chance:
            return Outcome(self.text, False, f"{said}, which may be chance")
        return Outcome(self.text, True, said)

    def _exceeds(self, found: Difference) -> bool:
        if self.quantity not in _COUNTS and found.change < LEAST_S:
            return False
        if not self.relative:
            return found.change > self.limit
        return found.change > self.limit * found.before

    def _figure(self, value: float) -> str:
        return f"{value:,.0f}" if self.quantity in _COUNTS else duration(value)


def _few(names: Sequence[str]) -> str:
    """Return the first names."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more if names else "none"
