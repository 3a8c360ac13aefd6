"""What a hold of the GIL cost others, and under which stacks threads waited for it or had it.

With W(t) the time that all threads together have waited until t, a hold from a to b has cost
W(b) - W(a); see `charges.py`. Whoever has the GIL does not wait for it, and one thread has it at a
time, so nothing is counted twice. What no recorded hold covers is hand-over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import bounds, lengths_ns
from contention_lab.trace.layer_schema import GilEventFlag

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from contention_lab.trace.records import Records

    Integers = npt.NDArray[np.int64]


def caused_ns(waits: Records, holds: Records) -> Integers:
    """Return how long all threads together waited for the GIL during each hold.

    Parameters
    ----------
    waits, holds
        `schema.GIL_WAIT` and `schema.GIL_HOLD`.
    """
    start, end = bounds(waits)
    begin, stop = bounds(holds)
    waited = np.zeros(len(holds), dtype=np.int64)
    for sign, times in ((1, np.sort(start)), (-1, np.sort(end))):
        sums = np.concatenate([[0], np.cumsum(times)])
        for direction, moment in ((1, stop), (-1, begin)):
            at = np.searchsorted(times, moment, side="right")
            waited += sign * direction * (at * moment - sums[at])
    return np.maximum(waited, 0)


def ns_by_stack(events: Records, weight_ns: Integers | None = None) -> Mapping[int, int]:
    """Add up events by stack; 0 stands for none.

    Parameters
    ----------
    events
        `schema.GIL_WAIT` or `schema.GIL_HOLD`. One without a stack counts as a part of the thread's
        next one that has one, or that was not running Python.
    weight_ns
        Of each event; its length by default. Ones count the events.
    """
    weights = lengths_ns(events) if weight_ns is None else weight_ns
    sums: dict[int, int] = {}
    for thread in np.unique(events["thread"]):
        mine = np.flatnonzero(events["thread"] == thread)
        mine = mine[np.argsort(events["end_ns"][mine], kind="stable")]
        own = events[mine]
        settled = (own["stack"] != 0) | (own["flags"] & int(GilEventFlag.NO_FRAMES) != 0)
        # The number of the next settled event; what comes after the last one belongs to nothing.
        number = np.cumsum(settled) - settled
        stacks = np.append(own["stack"][settled], 0)
        added = np.zeros(len(stacks), dtype=np.int64)
        np.add.at(added, number, weights[mine])
        for stack, ns in zip(stacks.tolist(), added.tolist(), strict=True):
            if ns:
                sums[stack] = sums.get(stack, 0) + ns
    return sums
