"""What samples of holders say: those taken within a hold, or within similar holds at its place."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.thread_samples import thread_samples
from contention_lab.trace import Call, State

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

OWN_SAMPLES: Final = 8
"""Samples within a hold from which they alone tell what it was spent on."""
POOLED_SAMPLES: Final = 3
"""Samples within all similar holds from which these tell what each was spent on."""
CALLS: Final = 1 + max(Call)
"""Columns for kinds of calls."""


class Seen(IntEnum):
    """What a holder was seen doing; columns of `SamplesInHolds.weight`."""

    PYTHON = 0  # running Python
    NATIVE = 1  # running without the GIL
    BLOCKED = 2  # in a system call
    NATIVE_LOCK = 3  # asleep on a lock of the C library
    GIL = 4  # waiting for the GIL
    CALLING = 5  # running in a recorded blocking call: in the kernel, or woken and without a core


class SamplesInHolds:
    """Samples within holds.

    Attributes
    ----------
    weight
        Shape (holds, kinds of `Seen`): time seen in each.
    calls
        Shape (holds, calls): shares of `blocked`.
    count, native
        Samples within each hold, and of them those running without the GIL.
    """

    def __init__(
        self,
        trace: Trace,
        every: Spans,
        ready: Integers,
        blocking: npt.NDArray[np.bool_],
        chosen: Integers,
    ) -> None:
        samples = thread_samples(trace)
        start, end, time = on_one_line(
            (every.thread, ready), (every.thread, every.end_ns), (samples.thread, samples.time_ns)
        )
        first, last = np.searchsorted(time, start), np.searchsorted(time, end)
        # Of most holds there is no sample; sums are made for the others only.
        seen = np.flatnonzero((last > first) & blocking)
        first, last = first[seen], last[seen]
        python = trace.meta.get("python")
        # Of several processes together no GIL is known: all of them can run Python at a time.
        no_gil = (isinstance(python, dict) and python.get("gil") is False) or not len(trace.gil)
        runs = samples.state == State.RUNNABLE
        calling = runs & samples.in_call & ~samples.has_gil
        native = runs & ~calling & ~samples.has_gil & (not no_gil)

        def within(mask: npt.NDArray[np.bool_], what: Any) -> Floats:
            until = np.concatenate([[0.0], np.cumsum(np.where(mask, what, 0.0))])
            sums: Floats = until[last] - until[first]
            return sums

        states = {
            Seen.PYTHON: runs & ~native & ~calling,
            Seen.NATIVE: native,
            Seen.BLOCKED: samples.state == State.BLOCKED,
            Seen.NATIVE_LOCK: samples.state == State.AWAITS_LOCK,
            Seen.GIL: samples.state == State.AWAITS_GIL,
            Seen.CALLING: calling,
        }
        own = np.zeros((len(seen), len(Seen) + CALLS))
        for state, mask in states.items():
            own[:, state] = within(mask, samples.weight_ns)
        for kind in Call:
            own[:, len(Seen) + kind] = within(samples.call == kind, samples.weight_ns)
        counts = (last - first).astype(np.int64)
        sites = trace.hold_columns["site"]
        length = every.length_ns
        groups, group = np.unique(alike_key(sites[seen], length[seen]), return_inverse=True)
        pooled = np.zeros((len(groups) + 1, own.shape[1]))
        for column in range(own.shape[1]):
            pooled[:-1, column] = np.bincount(group, weights=own[:, column], minlength=len(groups))
        enough = np.append(np.bincount(group, weights=counts, minlength=len(groups)), 0)
        pooled[enough < POOLED_SAMPLES] = 0.0
        key = alike_key(sites[chosen], length[chosen])
        at = np.searchsorted(groups, key)
        at = np.where((at < len(groups)) & (np.append(groups, -1)[at] == key), at, len(groups))
        weight = pooled[at]
        row = np.searchsorted(seen, chosen)
        sampled = np.append(seen, -1)[row] == chosen
        row = row[sampled]
        self.count: Integers = np.zeros(len(chosen), dtype=np.int64)
        self.native: Integers = np.zeros(len(chosen), dtype=np.int64)
        self.count[sampled] = counts[row]
        self.native[sampled] = within(native, 1.0)[row].astype(np.int64)
        many = np.flatnonzero(sampled)[counts[row] >= OWN_SAMPLES]
        weight[many] = own[row[counts[row] >= OWN_SAMPLES]]
        self.weight: Floats = weight[:, : len(Seen)]
        calls = weight[:, len(Seen) :]
        whole = calls.sum(axis=1, keepdims=True)
        self.calls: Floats = np.divide(calls, whole, out=np.zeros_like(calls), where=whole > 0)


def alike_key(site: npt.NDArray[Any], length_ns: Integers) -> Integers:
    """Return a key that holds of about one length at one place share."""
    octave = np.frexp(np.maximum(1, length_ns).astype(np.float64))[1] // 2
    key: Integers = site.astype(np.int64) << 8 | octave
    return key
