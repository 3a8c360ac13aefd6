"""Samples of what threads did, weighed, and with the GIL beside them.

The recorder looks at threads at an uneven pace, and at those in a recorded wait not at all: so each
sample counts for the time since the look before it, and says something only about the time that a
thread spent outside recorded waits. Samples taken together with stacks are left out of all sums,
since the recorder held the GIL then; they say where code was, not for how long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.analysis.overlap import on_one_line
from contention_lab.trace import GilFlag, State
from contention_lab.trace.layer_schema import BlockingFlag

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]

SAME_LOOK_NS: Final = 200_000
"""Samples closer than this are of one look; looks are a millisecond apart or more."""
LONGEST_NS: Final = 80_000_000
"""A sample stands for no more than this, should the recorder have been kept from looking. In long
recordings it looks every 50 ms, in uneven steps of up to 75 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples without stacks, ordered by thread, then time.

    Attributes
    ----------
    thread, time_ns
        Whose and when, int64.
    state, call
        As `State` and `Call`.
    has_gil
        Whether the thread had the GIL at this look; False on builds without one.
    in_call
        Whether it was in a blocking call that the layer below Python recorded: one that runs then
        does so in the kernel, or has been woken and waits for a core.
    weight_ns
        The time it stands for, int64.
    """

    thread: Integers
    time_ns: Integers
    state: npt.NDArray[np.uint16]
    call: npt.NDArray[np.uint16]
    has_gil: npt.NDArray[np.bool_]
    in_call: npt.NDArray[np.bool_]
    weight_ns: Integers


def thread_samples(trace: Trace) -> Samples:
    """Return the samples of threads."""
    records = trace.states[trace.states["stack"] == 0]
    time = np.minimum(records["time_ns"], LAST_TIME_NS).astype(np.int64)
    gil = trace.gil
    gil_time = np.minimum(gil["time_ns"], LAST_TIME_NS).astype(np.int64)
    looks = np.sort(np.concatenate([time, gil_time]))
    begins = np.flatnonzero(np.diff(looks, prepend=-LONGEST_NS) > SAME_LOOK_NS)
    period = np.minimum(np.diff(looks[begins], prepend=0), LONGEST_NS)
    look = np.searchsorted(looks[begins], time, side="right") - 1
    thread = records["thread"].astype(np.int64)
    awaiting = _during(trace.gil_waits, trace.gil_waits["end_ns"], thread, time)
    state = np.where(awaiting, State.AWAITS_GIL, records["state"])
    in_call = _during(trace.blocking, _call_ends(trace), thread, time)
    runs = state == State.RUNNABLE
    has_gil, known = np.zeros(len(records), dtype=np.bool_), np.ones(len(records), dtype=np.bool_)
    if len(gil):
        after = np.minimum(np.searchsorted(gil_time, time), len(gil) - 1)
        known = ~runs | (np.abs(gil_time[after] - time) < SAME_LOOK_NS)
        has_gil = (
            (gil["flags"][after] & int(GilFlag.HELD) != 0)
            & (gil["holder"][after] == records["thread"])
            & runs
        )
    # Where the look at the GIL came late, whether the thread had it is not known.
    order = np.lexsort((time, records["thread"]))
    order = order[known[order]]
    return Samples(
        thread=records["thread"][order].astype(np.int64),
        time_ns=time[order],
        state=state[order].astype(np.uint16),
        call=records["call"][order],
        has_gil=has_gil[order],
        in_call=in_call[order],
        weight_ns=period[look][order],
    )


def _call_ends(trace: Trace) -> npt.NDArray[np.uint64]:
    """Return when recorded calls ended; those that are not seen to end last as long as it."""
    calls = trace.blocking
    is_open = calls["flags"] & int(BlockingFlag.OPEN) != 0
    ends: npt.NDArray[np.uint64] = np.where(is_open, np.uint64(trace.duration_ns), calls["end_ns"])
    return ends


def _during(
    spans: Records, ends: npt.NDArray[np.uint64], thread: Integers, time: Integers
) -> npt.NDArray[np.bool_]:
    """Tell which samples were taken within spans of their thread."""
    if not len(spans):
        return np.zeros(len(time), dtype=np.bool_)
    of = spans["thread"].astype(np.int64)
    start, end = (
        np.minimum(one, LAST_TIME_NS).astype(np.int64) for one in (spans["start_ns"], ends)
    )
    start_key, end_key, key = on_one_line((of, start), (of, end), (thread, time))
    begun = np.searchsorted(np.sort(start_key), key, side="right")
    ended = np.searchsorted(np.sort(end_key), key, side="right")
    during: npt.NDArray[np.bool_] = begun > ended
    return during
