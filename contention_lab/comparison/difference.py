"""The difference of a figure between two sets of runs, with its interval.

The interval is Welch's, for means of samples that may spread differently (B. L. Welch, "The
generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34, 1947). One run on a side has no spread to go by, and so no interval.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Word = Literal["better", "worse", "no difference", "new", "gone", "not repeated"]

MANY_TIMES: Final = 9.0
"""Growth from which it is told in times and not in percent."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure before and after, where less is better.

    Attributes
    ----------
    before, after
        Means over the runs of each side.
    low, high
        Interval of `after - before`; None if a side has one run only.
    runs
        How many on each side.
    """

    before: float
    after: float
    low: float | None
    high: float | None
    runs: tuple[int, int]

    @property
    def change(self) -> float:
        """Return `after - before`."""
        return self.after - self.before

    @property
    def ratio(self) -> float | None:
        """Return the change as a share of what was before; None if that was nothing."""
        return self.change / self.before if self.before else None

    @property
    def is_certain(self) -> bool:
        """Tell whether repeats show that there is a difference."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def may_be_chance(self) -> bool:
        """Tell whether repeats leave it open that there is none; False without repeats."""
        return self.low is not None and not self.is_certain

    def word(self, least: float) -> Word:
        """Return what happened, in a word; without repeats nothing is claimed.

        Parameters
        ----------
        least
            A change of less is none, whatever the interval says.
        """
        if self.may_be_chance or abs(self.change) < least:
            return "no difference"
        if self.low is None:
            return "not repeated"
        if not self.before:
            return "new"
        if not self.after:
            return "gone"
        return "worse" if self.change > 0 else "better"

    @property
    def in_times(self) -> str:
        """Return the change relative to before, as text: `-54 %`, `22 times`; empty if unknown."""
        if self.ratio is None:
            return ""
        if self.ratio > MANY_TIMES:
            return f"{self.after / self.before:,.0f} times"
        return f"{100 * self.ratio:+.0f} %"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "before": self.before,
            "after": self.after,
            "change": self.change,
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
        }


def difference(before: Sequence[float], after: Sequence[float], confidence: float) -> Difference:
    """Return the difference of a figure between two sets of runs.

    Parameters
    ----------
    before, after
        The figure in each run; at least one on each side.
    confidence
        Of the interval, such as 0.95.
    """
    low = high = None
    means = statistics.fmean(before), statistics.fmean(after)
    if len(before) > 1 and len(after) > 1:
        half = _half_width(before, after, confidence)
        low, high = means[1] - means[0] - half, means[1] - means[0] + half
    return Difference(*means, low, high, (len(before), len(after)))


def _half_width(before: Sequence[float], after: Sequence[float], confidence: float) -> float:
    """Return half the width of Welch's interval."""
    from scipy.special import stdtrit

    parts = [statistics.variance(side) / len(side) for side in (before, after)]
    if not any(parts):
        return 0.0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True)
    )
    return float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(sum(parts))
