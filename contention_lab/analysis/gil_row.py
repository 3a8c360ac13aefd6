"""The GIL as a row of the lock table.

It is apart from `lock_table`, whose sums are about locks of the program's own code: a wait for the
GIL is no lock contention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import lengths_ns
from contention_lab.analysis.lock_table import LockRow
from contention_lab.trace import Level, Lock

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.trace import Trace

GIL_LOCK: Final = Lock(
    0, type="the interpreter's lock", name="GIL", site=None, parent=0, instance=1
)


def gil_row(trace: Trace) -> LockRow | None:
    """Return what happened to the GIL, as for any lock.

    Parameters
    ----------
    trace
        A trace; one that was cut down to some stacks has no totals, and counts single events.

    Returns
    -------
    LockRow or None
        Acquires are all that took it, contended those that had to wait, which they did asleep;
        `utilisation` is the share of the recording that anybody had it. None where not every wait
        was seen: without the layer below Python, or without a GIL.
    """
    totals, waits, holds = trace.gil_totals, trace.gil_waits, trace.gil_holds
    length = np.sort(lengths_ns(waits)) / 1e9
    if len(totals):
        wait_s, hold_s = (float(totals[name].sum()) / 1e9 for name in ("wait_ns", "held_ns"))
        acquires, contended = (int(totals[name].sum()) for name in ("holds", "waits"))
        threads = len(totals)
    elif len(waits) or len(holds):
        wait_s, hold_s = float(length.sum()), float(lengths_ns(holds).sum()) / 1e9
        acquires, contended = len(holds), len(waits)
        threads = len({*waits["thread"].tolist(), *holds["thread"].tolist()})
    else:
        return None
    wall_s = trace.duration_ns / 1e9
    return LockRow(
        lock=GIL_LOCK,
        acquires=acquires,
        contended=contended,
        timed_out=0,
        failed_tries=0,
        wait_s=wait_s,
        spin_s=0.0,
        spin_cpu_s=0.0,
        park_s=wait_s,
        gil_s=0.0,
        hold_s=hold_s,
        utilisation=min(1.0, hold_s / wall_s) if wall_s else 0.0,
        wait_p50_s=quantile(length, 0.5),
        wait_p99_s=quantile(length, 0.99),
        wait_max_s=quantile(length, 1.0),
        hold_max_s=float(lengths_ns(holds).max(initial=0)) / 1e9,
        threads=threads,
        open_waits=0,
        missing_waits=max(0, contended - len(waits)) if trace.level > Level.COUNTERS else contended,
    )


def quantile(ordered: npt.NDArray[np.float64], share: float) -> float:
    """Return a measured value, the smallest that so large a share of all do not exceed."""
    return float(ordered[max(0, int(np.ceil(share * len(ordered))) - 1)]) if len(ordered) else 0.0
