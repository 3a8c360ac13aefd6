"""How many threads wait for a lock, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Times = npt.NDArray[np.int64]


def waiters_over_time(
    start_ns: Times, end_ns: Times, most_points: int
) -> tuple[Times, npt.NDArray[np.intp]]:
    """Return the moments at which a number of waiters changes, and the number from then on.

    Parameters
    ----------
    start_ns, end_ns
        Of each wait.
    most_points
        If there are more moments, equal steps of time are taken instead, each with the largest
        number of waiters within it, so that no crowd is lost, and the last moment after them.
    """
    times = np.concatenate([start_ns, end_ns])
    change = np.repeat(np.array([1, -1], dtype=np.intp), len(start_ns))
    order = np.argsort(times, kind="stable")
    times = times[order]
    waiting = np.cumsum(change[order])
    last_of_moment = np.append(times[1:] != times[:-1], True) if len(times) else times > 0
    times, waiting = times[last_of_moment], waiting[last_of_moment]
    return thinned(times, waiting, most_points)


def thinned(
    times: Times, waiting: npt.NDArray[np.intp], most_points: int
) -> tuple[Times, npt.NDArray[np.intp]]:
    """Return at most so many of the points that `waiters_over_time` returns, as it does."""
    if len(times) <= most_points:
        return times, waiting
    length = -(-int(times[-1] - times[0] + 1) // (most_points - 1))
    step = (times - times[0]) // length
    first = np.append(True, step[1:] != step[:-1])
    begins = np.flatnonzero(first)
    largest = np.maximum.reduceat(waiting, begins)
    # What waits when a step begins is waiting in it, too.
    largest[1:] = np.maximum(largest[1:], waiting[begins[1:] - 1])
    steps = times[0] + step[begins] * length
    return np.append(steps, max(times[-1], steps[-1] + 1)), np.append(largest, waiting[-1])
