"""Pairs of a wait and a hold of the same lock, with the time that falls to each.

Where the holds of a lock never overlap each other (a mutex) that is the time they have in common.
Where they do (a semaphore), each moment is divided evenly among those who hold it then, so that the
parts of a wait add up to what holds cover of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.overlap import PAIR, Line, Searched
from contention_lab.analysis.shares import UNITS, Shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Records


def overlaps(
    waits: Spans, holds: Spans, ready_ns: npt.NDArray[np.int64] | None = None
) -> Iterator[Records]:
    """Yield the shares of waits that fall to holds of the same lock.

    Parameters
    ----------
    waits, holds
        Spans of a length above 0.
    ready_ns
        For each hold a moment within it: what comes before is told apart. Its start by default.

    Yields
    ------
    Records
        Arrays of `PAIR`: `wait` is a position in `waits`, `hold` an `index` of `holds`, `gil_ns`
        the part of `ns` before the holder was ready. Of one wait, the shares are at most as long as
        the overlaps, and together exactly as long as the time that any hold covers.
    """
    line = Line(waits, holds, ready_ns)
    crowded = line.crowded()
    for pairs in line.pairs(Searched(line, np.flatnonzero(~crowded))):
        wait, hold = pairs["wait"], pairs["hold"]
        begin = np.maximum(line.waits.start_ns[wait], line.holds.start_ns[hold])
        until = np.minimum(line.waits.end_ns[wait], line.ready_ns[hold])
        pairs["gil_ns"] = np.clip(until - begin, 0, pairs["ns"])
        pairs["hold"] = line.holds.index[hold]
        yield pairs
    if crowded.any():
        octave = np.frexp(line.holds.length_ns.astype(np.float64))[1]
        octaves = [
            Searched(line, np.flatnonzero(crowded & (octave == size)))
            for size in np.unique(octave[crowded])
        ]
        shares = Shares(line)
        for pairs in line.pairs(*octaves):
            yield _shared(line, pairs, shares)
    yield np.zeros(0, dtype=PAIR)


def _shared(line: Line, pairs: Records, shares: Shares) -> Records:
    """Return pairs of holds that may overlap each other, with their shares."""
    if not len(pairs):
        return pairs
    # A few sorted runs, one for each octave: a stable sort merges them.
    pairs = pairs[np.argsort(pairs["wait"].astype(np.int64), kind="stable")]
    wait, hold = pairs["wait"], pairs["hold"]
    begin = np.maximum(shares.wait_start[wait], shares.hold_start[hold])
    units = np.minimum(shares.wait_end[wait], shares.hold_end[hold]) - begin
    until_ready = np.minimum(shares.wait_end[wait], shares.ready[hold]) - begin
    first = np.flatnonzero(np.diff(wait, prepend=-1))
    count = np.diff(first, append=len(pairs))
    running = np.cumsum(units)
    within = running - np.repeat(running[first] - units[first], count)
    whole = np.maximum(np.add.reduceat(units, first), 1)
    covered = shares.covered_ns[wait[first]]
    # Rounding the running share instead of each share makes the sum exact.
    until = np.rint(within * np.repeat(covered / whole, count)).astype(np.int64)
    until = np.clip(until, 0, np.repeat(covered, count))
    last = np.append(first[1:], len(pairs)) - 1
    until[last] = covered
    ns = np.diff(until, prepend=0)
    ns[first] = until[first]
    pairs["ns"] = ns
    pairs["gil_ns"] = np.clip(until_ready // UNITS, 0, ns)
    pairs["hold"] = line.holds.index[hold]
    return pairs[pairs["ns"] > 0]
