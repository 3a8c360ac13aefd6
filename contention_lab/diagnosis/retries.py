"""What threads do between failed tries at a lock: whether they sleep, and only then.

It states facts of some locks and judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.windows import Windows
from contention_lab.diagnosis.thresholds import LEAST_ANYWAY, LEAST_LOOKS, MOSTLY
from contention_lab.trace import WaitFlag

if TYPE_CHECKING:
    from collections.abc import Collection

    from contention_lab.analysis.activity import Activity
    from contention_lab.trace import Trace
    from contention_lab.trace.records import Records


def sleep_between(trace: Trace, activity: Activity, locks: Collection[int]) -> bool:
    """Tell whether threads slept for most of the time between failed tries at locks."""
    series = _series(trace, locks)
    start, end = (series[name].astype(np.int64) for name in ("start_ns", "end_ns"))
    threads = np.unique(series["thread"]).tolist()
    doing = activity.doing(threads, Windows.union(start, end))
    return doing.samples >= LEAST_LOOKS and doing.sleeping >= MOSTLY


def do_that_anyway(trace: Trace, activity: Activity, locks: Collection[int]) -> bool:
    """Tell whether threads mostly do between failed tries what they also do when none has failed.

    The same is the same stack, line by line.
    """
    every = _series(trace, locks)
    between: dict[int, float] = defaultdict(float)
    otherwise: dict[int, float] = defaultdict(float)
    for thread in np.unique(every["thread"]).tolist():
        series = every[every["thread"] == thread]
        start, end = (series[name].astype(np.int64) for name in ("start_ns", "end_ns"))
        trying = Windows.union(start, end)
        born, ended = (np.array([time]) for time in activity.life(thread))
        for sums, when in (
            (between, trying),
            (otherwise, Windows.union(born, ended).without(trying)),
        ):
            for stack, ns in activity.stacks([thread], when).items():
                sums[stack] += ns
    both = sum(ns for stack, ns in between.items() if otherwise[stack] >= LEAST_ANYWAY * ns)
    return both >= MOSTLY * sum(between.values()) > 0


def _series(trace: Trace, locks: Collection[int]) -> Records:
    waits = trace.wait_columns
    mine = np.isin(waits["lock"], [*locks])
    mine &= waits["flags"] & int(WaitFlag.SERIES) != 0
    series: Records = waits[mine]
    return series
