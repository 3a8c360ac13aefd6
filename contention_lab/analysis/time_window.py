"""The part of a trace that lies between two moments.

Waits and holds that reach beyond are cut. What is not recorded one by one has no moment: counters
are made anew from the records that are left, so that acquires without a wait are not among them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.trace.totals import totals

if TYPE_CHECKING:
    from contention_lab.trace import Records, Trace


def during(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """Return the waits and holds between two moments.

    Parameters
    ----------
    trace
        A trace.
    start_ns, end_ns
        Since the start of the recording, 0 <= start <= end.

    Returns
    -------
    Trace
        With all of its tables, in the time of the whole recording. `duration_ns` is its end, so
        that spans still open then last until then. What the layer below Python brought, samples
        and orders of locks are left out.
    """
    waits, holds = (_cut(records, start_ns, end_ns) for records in (trace.waits, trace.holds))
    return replace(
        trace,
        duration_ns=min(max(trace.duration_ns, 0), end_ns),
        wait_chunks=(waits,),
        hold_chunks=((0, holds),),
        counter_chunks=(totals(waits, holds),),
        gil_chunks=(),
        order_chunks=(),
        state_chunks=(),
        load_chunks=(),
        step_chunks=(),
        layer_chunks={},
    )


def _cut(records: Records, start_ns: int, end_ns: int) -> Records:
    """Return the records that lie at least partly within, cut to what does."""
    kept = (records["start_ns"] < end_ns) & (
        (records["end_ns"] > start_ns) | (records["end_ns"] == 0)
    )
    cut: Records = records[kept].copy()
    for name in ("start_ns", "end_ns"):
        times = cut[name]
        is_open = times == 0 if name == "end_ns" else np.zeros(len(times), dtype=np.bool_)
        cut[name] = np.where(is_open, times, np.clip(times, start_ns, end_ns))
    return cut
