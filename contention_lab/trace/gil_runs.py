"""Holds of the GIL that were written in runs, each one again.

A thread that gives the GIL up and has it again thousands of times a second writes several holds as
one record, `schema.GIL_RUN`. Nothing is lost by that, so nobody but the reader knows of runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.trace.layer_schema import GIL_HOLD, RUN_HOLDS, GilEventFlag
from contention_lab.trace.varied import MalformedError

if TYPE_CHECKING:
    from contention_lab.trace.records import Records


def holds_of(runs: Records) -> Records:
    """Return the holds of runs, `schema.GIL_HOLD`, in the order in which they were written.

    Parameters
    ----------
    runs
        `schema.GIL_RUN`. The stack, and that there were no frames, is said of the last hold.

    Raises
    ------
    MalformedError
        A run has no holds, or more than there is room for.
    """
    count = runs["count"].astype(np.int64)
    wrong = count[(count < 1) | (count > RUN_HOLDS)]
    if len(wrong):
        raise MalformedError(f"has a run of {wrong[0]} holds instead of 1 to {RUN_HOLDS}")
    steps = runs["step_ns"].astype(np.uint64).reshape(len(runs), RUN_HOLDS - 1, 2)
    begun = np.zeros((len(runs), RUN_HOLDS), dtype=np.uint64)
    np.cumsum(steps.sum(axis=2), axis=1, out=begun[:, 1:])
    run = np.repeat(np.arange(len(runs)), count)
    at = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    last = at == count[run] - 1
    holds = np.zeros(len(run), dtype=GIL_HOLD)
    holds["start_ns"] = runs["start_ns"][run] + begun[run, at]
    length_ns = steps[run, np.minimum(at, RUN_HOLDS - 2), 0]
    holds["end_ns"] = np.where(last, runs["end_ns"][run], holds["start_ns"] + length_ns)
    holds["thread"], holds["waiters"] = runs["thread"][run], runs["waiters"][run]
    holds["stack"] = np.where(last, runs["stack"][run], 0)
    of_all = runs["flags"] & ~np.uint16(GilEventFlag.NO_FRAMES)
    holds["flags"] = np.where(last, runs["flags"][run], of_all[run])
    return holds
