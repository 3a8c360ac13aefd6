"""A share that was sampled, with its 95 % interval.

Samples in a row are alike: a wait of a second at a hundred samples a second is one observation and
not a hundred. The recording is cut into batches of equal length, and from how much the batches
differ follows how many independent samples it is worth; the interval is Wilson's for so many
(E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.diagnosis.wording import percent

if TYPE_CHECKING:
    import numpy.typing as npt

BATCHES: Final = 20
_NORMAL: Final = 1.959964
"""Quantile of the normal distribution for 95 %."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the time.

    Attributes
    ----------
    value
        Of the samples.
    low, high
        The 95 % interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Write it: `93 % (90 to 96 %)`."""
        low = percent(self.low).removesuffix(" %")
        return f"{percent(self.value)} ({low} to {percent(self.high)})"

    def evidence(self, name: str) -> dict[str, float]:
        """Return it as figures of a finding."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def share(
    hits: npt.NDArray[np.float64], whole: npt.NDArray[np.float64], batch: npt.NDArray[np.int64]
) -> Share:
    """Return the share of `hits` in `whole`.

    Parameters
    ----------
    hits, whole
        For each sample or moment: what it adds to either, `hits` no more than `whole`.
    batch
        Which of the `BATCHES` it is in.
    """
    total = float(whole.sum())
    if not total:
        return Share(0.0, 0.0, 1.0)
    value = float(hits.sum()) / total
    sizes = np.bincount(batch, weights=whole, minlength=BATCHES)
    there = sizes > 0
    parts = np.bincount(batch, weights=hits, minlength=BATCHES)[there] / sizes[there]
    count = float(np.count_nonzero(there))
    worth = count
    spread = float(np.average((parts - value) ** 2, weights=sizes[there])) / max(1.0, count - 1)
    binomial = value * (1.0 - value)
    if binomial > 0.0:
        most = float(np.count_nonzero(whole))
        worth = min(most, binomial / spread) if spread > 0.0 else most
    return _wilson(value, max(1.0, worth))


def _wilson(value: float, count: float) -> Share:
    square = _NORMAL**2
    middle = (value + square / (2 * count)) / (1 + square / count)
    half = (
        _NORMAL
        * np.sqrt(value * (1 - value) / count + square / (4 * count**2))
        / (1 + square / count)
    )
    return Share(value, max(0.0, float(middle - half)), min(1.0, float(middle + half)))
