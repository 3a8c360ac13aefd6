"""What is irregular in a series of batch times, before any law is fitted.

It looks for what a smooth law cannot follow: better than linear scaling, a cliff, and a plateau. It
names no cause, since numbers alone give none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from contention_lab.scaling.law import FloatArray

SUPER_LINEAR: Final = 1.05
"""Throughput per thread that beats the first point's by this factor is better than linear."""

CLIFF_STEEPNESS: Final = 1.5
"""Throughput that falls faster than N to the minus this power, between two neighbours..."""

CLIFF_DROP: Final = 0.6
"""...and to less than this share, is a cliff: no cost per thread or pair does that."""

FLAT: Final = 0.05
"""Throughputs that stay within this share of their mean form a plateau."""


def medians(threads: FloatArray, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct thread counts and the median time at each."""
    distinct = np.unique(threads)
    middle = np.array([np.median(seconds[threads == count]) for count in distinct])
    return distinct, middle


def super_linear_at(threads: FloatArray, seconds: FloatArray) -> float | None:
    """Return the thread count that does better than its share of the first point; None if none."""
    counts, times = medians(threads, seconds)
    efficiency = counts[0] * times[0] / (counts * times)
    best = int(np.argmax(efficiency))
    return float(counts[best]) if efficiency[best] > SUPER_LINEAR else None


def cliffs(threads: FloatArray, seconds: FloatArray) -> tuple[tuple[float, float, float], ...]:
    """Return (threads before, threads after, share of the throughput left) of every cliff."""
    counts, times = medians(threads, seconds)
    kept = times[:-1] / times[1:]
    steepness = -np.log(kept) / np.log(counts[1:] / counts[:-1])
    found = (steepness > CLIFF_STEEPNESS) & (kept < CLIFF_DROP)
    return tuple(
        (float(counts[index]), float(counts[index + 1]), float(kept[index]))
        for index in np.flatnonzero(found)
    )


def plateau_from(threads: FloatArray, seconds: FloatArray) -> float | None:
    """Return where the throughput stops changing, over at least three counts and a factor of 2."""
    counts, times = medians(threads, seconds)
    rates = 1.0 / times
    for index in range(1, len(counts) - 2):
        tail = rates[index:]
        flat = np.all(np.abs(tail / tail.mean() - 1.0) < FLAT)
        rose = rates[index] > rates[0] * (1.0 + 2.0 * FLAT)
        if flat and rose and counts[-1] >= 2.0 * counts[index]:
            return float(counts[index])
    return None


def irregularities(threads: FloatArray, seconds: FloatArray) -> tuple[str, ...]:
    """Return one sentence for each irregularity."""
    said: list[str] = []
    fast = super_linear_at(threads, seconds)
    if fast is not None:
        said.append(
            f"Better than linear up to {fast:g} threads: the first point is a poor baseline or a "
            "cache grew with the threads; the serial share is clamped at zero."
        )
    falls = [
        f"between {before:g} and {after:g} threads (to {100.0 * kept:.2g} %)"
        for before, after, kept in cliffs(threads, seconds)
    ]
    if falls:
        said.append(
            f"A cliff {', '.join(falls)}: no smooth law follows a cliff; look for more threads "
            "than cores, a second socket, or a lock whose holder loses its core."
        )
    flat = plateau_from(threads, seconds)
    if flat is not None:
        said.append(
            f"Flat from {flat:g} threads on: a saturated lock and a machine with {flat:g} cores "
            "look the same here; compare with the core count."
        )
    return tuple(said)
