"""How much of a call that blocked was waiting for a core after it, and so no sleep.

A recorded call ends when its thread runs again. Where threads outnumber the cores, and most of all
where they spin, that is long after what it waited for has happened. The kernel counts how long each
thread was ready and had no core; samples of that count say it for the time between two of them,
and calls are taken to have their share of it. A call is never taken for shorter than the shortest
of the thread's calls of its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.trace import Trace

    Floats = NDArray[np.float64]


def slept_ns(trace: Trace, thread: int, calls: NDArray[np.void]) -> Floats:
    """Return for how long each call of a thread slept, in ns, float64.

    Parameters
    ----------
    trace, thread
        Whose.
    calls
        Its records in `trace.blocking`.
    """
    start, stop = (calls[name].astype(np.float64) for name in ("start_ns", "end_ns"))
    length = np.maximum(0.0, stop - start)
    states = trace.states
    mine = states[(states["thread"] == thread) & (states["cpu_ns"] > 0) & (states["delay_ns"] > 0)]
    if len(mine) < 2 or not len(calls):
        return length
    time, cpu, delay = (mine[name].astype(np.float64) for name in ("time_ns", "cpu_ns", "delay_ns"))
    delay, cpu = np.maximum.accumulate(delay), np.maximum.accumulate(cpu)
    off_core = np.maximum.accumulate(time - cpu)
    late = np.divide(
        np.diff(delay), np.diff(off_core), out=np.zeros(len(time) - 1), where=np.diff(off_core) > 0
    )
    # What came before the first sample and after the last was like what is next to it.
    at = np.searchsorted(time, (start + stop) / 2) - 1
    share = np.minimum(1.0, late[at.clip(0, len(late) - 1)])
    kinds, which = np.unique(calls["call"], return_inverse=True)
    shortest = np.full(len(kinds), np.inf)
    np.minimum.at(shortest, which, length)
    found: Floats = np.maximum(length * (1.0 - share), shortest[which])
    return found
