"""Measured scaling: thread counts, values, and what the values mean.

It turns every kind of table into the same quantity, the seconds that a fixed amount of work
takes, and back into the table's own unit. It reads no file (see `reading`). What the values mean
is never guessed where a guess would change the answer: rising times may be a fixed batch that
scales badly or a batch that grew with the threads, and only one of them has a problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from contention_lab.scaling.errors import AmbiguousWorkError, ScalingError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from contention_lab.scaling.law import FloatArray

Kind = Literal["time", "throughput"]
Work = Literal["fixed", "per-thread"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
WORKS: Final[tuple[Work, ...]] = get_args(Work)

IMPOSSIBLE: Final = 1.25
"""A reading under which threads do this much better than linear is not the right one."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """A table of thread counts and measured values.

    Attributes
    ----------
    threads
        Positive, ascending, repeats allowed.
    values
        As measured: a time in seconds, or a rate.
    kind
        Whether a value is a time or a throughput.
    work
        `fixed`: a fixed amount over all threads, or the rate of all threads together. `per-thread`:
        every thread does the same amount, or the rate of one thread.
    unit
        Of a value, for people.
    """

    threads: FloatArray
    values: FloatArray
    kind: Kind
    work: Work
    unit: str

    @property
    def seconds(self) -> FloatArray:
        """The time of a fixed amount of work, in the table's unit (or one over its unit)."""
        times = self.values if self.kind == "time" else 1.0 / self.values
        return times / self.threads if self.work == "per-thread" else times

    def in_own_unit(self, threads: FloatArray, seconds: FloatArray) -> FloatArray:
        """Turn times of a fixed amount of work back into what the table would show."""
        times = seconds * threads if self.work == "per-thread" else seconds
        return times if self.kind == "time" else 1.0 / times


def measured(
    threads: ArrayLike,
    values: ArrayLike,
    *,
    kind: Kind,
    work: Work | None,
    unit: str | None = None,
) -> Measurements:
    """Check a table and settle what its values mean.

    Parameters
    ----------
    threads, values
        Of equal length, positive, finite.
    kind
        Whether a value is a time or a throughput.
    work
        What was measured; None where nobody said.
    unit
        Of a value; `s` or `1/s` by default.

    Raises
    ------
    AmbiguousWorkError
        Where nobody said what was measured and the numbers allow both readings.
    ScalingError
        Where a number cannot be used.
    """
    counts, numbers = checked(threads, values)
    settled = work if work is not None else _only_reading(counts, numbers, kind)
    return Measurements(counts, numbers, kind, settled, unit or ("s" if kind == "time" else "1/s"))


def _only_reading(threads: FloatArray, values: FloatArray, kind: Kind) -> Work:
    """Return the reading that the numbers leave: the other would scale better than linearly."""
    possible = [
        work for work in WORKS if _best_efficiency(threads, values, kind, work) < IMPOSSIBLE
    ]
    if len(possible) == 1:
        return possible[0]
    if kind == "time":
        meanings = (
            "a fixed batch over all threads (--work fixed), or the same amount for every thread, "
            "so that the work grows with the threads (--work per-thread)"
        )
    else:
        meanings = (
            "the rate of all threads together (--work fixed), or of one thread (--work per-thread)"
        )
    raise AmbiguousWorkError(
        f"these {'times' if kind == 'time' else 'rates'} can be {meanings}: "
        "the answers differ, so say which"
    )


def _best_efficiency(threads: FloatArray, values: FloatArray, kind: Kind, work: Work) -> float:
    """Return the highest throughput per thread, as a multiple of the first count's."""
    seconds = Measurements(threads, values, kind, work, "").seconds
    efficiency = 1.0 / (threads * seconds)
    first = float(np.median(efficiency[threads == threads[0]]))
    return float(np.median(efficiency[threads == threads[int(np.argmax(efficiency))]])) / first


def checked(threads: ArrayLike, seconds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return thread counts and times as arrays ordered by threads.

    Raises
    ------
    ScalingError
        Where they are not positive and finite, or differ in length.
    """
    counts = np.atleast_1d(np.asarray(threads, dtype=np.float64))
    times = np.atleast_1d(np.asarray(seconds, dtype=np.float64))
    if counts.shape != times.shape or counts.ndim != 1:
        raise ScalingError(
            f"{counts.size} thread counts and {times.size} measurements: give one for each"
        )
    usable = np.isfinite(counts) & np.isfinite(times) & (counts > 0.0) & (times > 0.0)
    if not usable.all():
        index = int(np.argmin(usable))
        raise ScalingError(
            f"point {index + 1} ({counts[index]:g} threads, {times[index]:g}): "
            "thread counts and measurements must be positive, finite numbers"
        )
    order = np.argsort(counts, kind="stable")
    return counts[order], times[order]
