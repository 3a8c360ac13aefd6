"""When a new holder could go on: after it had the lock, and then the GIL.

A hold starts when the lock is acquired, which after a wait happens without the GIL. The end of the
wait tells when the GIL was there as well. The two are separate records; what joins them is that a
thread holds the lock at the moment its wait for it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS, hold_spans
from contention_lab.analysis.overlap import on_one_line
from contention_lab.trace import Outcome, WaitKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace import Trace


def ready_to_run(trace: Trace) -> npt.NDArray[np.int64]:
    """Return for each hold when its holder had lock and GIL, in nanoseconds; read-only.

    Without a wait for the GIL that is the start of the hold.
    """
    if "ready_to_run" not in trace.derived:
        ready = _ready_to_run(trace)
        ready.setflags(write=False)
        trace.derived["ready_to_run"] = ready
    found: npt.NDArray[np.int64] = trace.derived["ready_to_run"]
    return found


def _ready_to_run(trace: Trace) -> npt.NDArray[np.int64]:
    holds, waits = hold_spans(trace), trace.wait_columns
    acquired = (
        (waits["outcome"] == Outcome.ACQUIRED)
        & (waits["kind"] == WaitKind.CONTENTION)
        & (waits["gil_ns"] > 0)
    )
    if not acquired.any() or not len(holds.index):
        return holds.start_ns
    ready = holds.start_ns.copy()
    end = np.minimum(waits["end_ns"][acquired], LAST_TIME_NS).astype(np.int64)
    user_of_hold = holds.lock.astype(np.int64) << 32 | holds.thread
    user_of_wait = waits["lock"][acquired].astype(np.int64) << 32 | waits["thread"][acquired]
    users = np.unique(np.concatenate([user_of_hold, user_of_wait]))
    group_of_hold = np.searchsorted(users, user_of_hold)
    group_of_wait = np.searchsorted(users, user_of_wait)
    starts, ends = on_one_line((group_of_hold, holds.start_ns), (group_of_wait, end))
    order = np.argsort(starts, kind="stable")
    at = np.searchsorted(starts[order], ends, side="right") - 1
    hold = order[np.maximum(at, 0)]
    same = (at >= 0) & (group_of_hold[hold] == group_of_wait) & (end <= holds.end_ns[hold])
    ready[hold[same]] = end[same]
    return ready
