"""What a thread's own time consisted of, stretch by stretch: on a core, asleep, with the GIL.

CPU time is measured for the thread as a whole and for holds that blocked somebody; calls that block
are recorded within holds where the layer below Python was there, else sampled. What was measured
within a hold is taken out of the whole, and the rest belongs to the rest. Time in which a thread
wanted a core and had none is neither: a simulation makes its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.delay import slept_ns
from contention_lab.simulate.retaken import with_gil_kept
from contention_lab.simulate.time_use import ALL_PYTHON, has_layer, run_delay_ns, sampled_with_gil

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.simulate.time_use import TimeUse
    from contention_lab.trace import Trace

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

DOUBT: Final = 10.0
"""Samples of the GIL's holder that the thread's own share of it is worth, beside those of a lock's
holds: with fewer than these, holds are taken for what the thread does on average."""

ALIKE: Final = 8
"""Measured holds of a lock from which on they say what its other holds are like."""
LEAST_SLEEP: Final = 0.05
"""A smaller share of the time outside measured holds that is left when all that is known has been
taken off is the error of the clocks, and no sleep."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of one thread's time, between two events each.

    Attributes
    ----------
    start_ns, length_ns
        When each began and how long it was, float64; the next begins where it ends.
    own
        Whether the thread waited for nobody.
    record
        The hold in `trace.holds` that is innermost, -1 if there is none or it was only counted.
    lock
        The lock that is innermost, 0 for none.
    """

    start_ns: Floats
    length_ns: Floats
    own: NDArray[np.bool_]
    record: Integers
    lock: Integers


@dataclass(frozen=True, slots=True)
class OwnTime:
    """What stretches consist of: nanoseconds on a core and asleep, and the GIL's share of the core.

    Attributes
    ----------
    on_core_ns, asleep_ns, gil
        float64, one for each stretch.
    """

    on_core_ns: Floats
    asleep_ns: Floats
    gil: Floats


def own_time(trace: Trace, thread: int, stretches: Stretches, use: TimeUse) -> OwnTime:
    """Return what the stretches of a thread consist of.

    Parameters
    ----------
    trace, thread
        Whose.
    stretches
        Its time.
    use
        What its own time consists of on average.
    """
    own = np.where(stretches.own, stretches.length_ns, 0.0)
    cpu, asleep = _within_holds(trace, thread, stretches, own, use)
    cpu, asleep = (_as_the_others(share, stretches, own) for share in (cpu, asleep))
    known = np.isfinite(cpu)
    found_cpu = float((own * np.where(known, cpu, 0.0)).sum())
    found_asleep = float((own * np.where(known, asleep, 0.0)).sum())
    rest = float(own[~known].sum())
    share, slept = 0.0, 0.0
    if rest > 0.0:
        share = min(1.0, max(0.0, use.cpu * float(own.sum()) - found_cpu) / rest)
        late = run_delay_ns(trace, thread)
        if has_layer(trace) and late is not None:
            # Every wait for the GIL is known, and what the scheduler kept it waiting, too.
            late_in_holds = float(own[known].sum()) - found_cpu - found_asleep
            slept = 1.0 - share - max(0.0, late - max(0.0, late_in_holds)) / rest
            slept = slept if slept >= LEAST_SLEEP else 0.0
        else:
            slept = min(use.asleep, 1.0 - share)
    cpu = np.where(known, cpu, share)
    asleep = np.where(known, asleep, max(0.0, slept))
    on_core = own * cpu
    return OwnTime(on_core, own * asleep, _gil_shares(trace, thread, stretches, on_core, use))


def _within_holds(
    trace: Trace, thread: int, stretches: Stretches, own: Floats, use: TimeUse
) -> tuple[Floats, Floats]:
    """Return the shares on a core and asleep of stretches in measured holds, NaN elsewhere."""
    nothing = np.full(len(own), np.nan)
    holds = trace.hold_columns
    inside = stretches.record >= 0
    if not inside.any():
        return nothing, nothing
    records = np.unique(stretches.record[inside])
    measured = records[holds["cpu_ns"][records] > 0]
    if not len(measured):
        return nothing, nothing
    edges = np.append(stretches.start_ns, stretches.start_ns[-1] + stretches.length_ns[-1])
    until = np.concatenate([[0.0], np.cumsum(own)])
    begin, end = (holds[name][measured].astype(np.float64) for name in ("start_ns", "end_ns"))
    length = np.interp(end, edges, until) - np.interp(begin, edges, until)
    length = np.maximum(length, 1.0)
    cpu = np.minimum(1.0, holds["cpu_ns"][measured] / length)
    if has_layer(trace):
        slept = np.minimum(1.0 - cpu, _blocked_ns(trace, thread, begin, end) / length)
    elif use.asleep > 0.0 or use.cpu < 0.5:
        # Nobody saw the calls: a hold that lost its core against its will is taken to have used it.
        displaced = holds["preemptions"][measured] > 0
        cpu = np.where(displaced, 1.0, cpu)
        slept = 1.0 - cpu
    else:
        slept = np.minimum(1.0 - cpu, use.asleep)
    place = np.searchsorted(measured, np.maximum(stretches.record, 0))
    place = np.minimum(place, len(measured) - 1)
    hit = inside & (measured[place] == stretches.record)
    return np.where(hit, cpu[place], np.nan), np.where(hit, slept[place], np.nan)


def _as_the_others(share: Floats, stretches: Stretches, own: Floats) -> Floats:
    """Return shares in which holds that were not measured are like those of the lock that were."""
    known = np.isfinite(share)
    locks, which = np.unique(stretches.lock, return_inverse=True)
    time = np.bincount(which[known], weights=own[known], minlength=len(locks))
    spent = np.bincount(which[known], weights=(own * share)[known], minlength=len(locks))
    count = np.bincount(which[known], minlength=len(locks))
    usual = np.full(len(locks), np.nan)
    told = (count >= ALIKE) & (time > 0) & (locks != 0)
    usual[told] = spent[told] / time[told]
    return np.where(known, share, usual[which])


def _blocked_ns(trace: Trace, thread: int, begin: Floats, end: Floats) -> Floats:
    """Return how long the thread slept in system calls between given times."""
    calls = trace.blocking
    mine = calls[calls["thread"] == thread]
    mine = mine[np.argsort(mine["start_ns"], kind="stable")]
    start, stop = mine["start_ns"].astype(np.float64), mine["end_ns"].astype(np.float64)
    stop = np.maximum.accumulate(np.maximum(start, stop))
    if not len(mine):
        return np.zeros(len(begin))
    edges = np.stack([start, stop], axis=1).ravel()
    slept = np.minimum(slept_ns(trace, thread, mine), stop - start)
    until = np.stack([np.cumsum(slept) - slept, np.cumsum(slept)], axis=1)
    spent: Floats = np.interp(end, edges, until.ravel()) - np.interp(begin, edges, until.ravel())
    return spent


def _gil_shares(
    trace: Trace, thread: int, stretches: Stretches, on_core: Floats, use: TimeUse
) -> Floats:
    """Return the GIL's share of the time on a core, told apart by the lock that is held."""
    if use.gil in (0.0, 1.0):
        return np.full(len(on_core), use.gil)
    kept = _in_spans(stretches, *with_gil_kept(trace, thread))
    locks, which = np.unique(stretches.lock, return_inverse=True)
    spent = np.bincount(which, weights=np.where(kept, 0.0, on_core), minlength=len(locks))
    at = np.searchsorted(stretches.start_ns, sampled_with_gil(trace, thread), side="right") - 1
    at = at[at >= 0]
    seen = np.bincount(which[at[~kept[at]]], minlength=len(locks)).astype(np.float64)
    seen += DOUBT * spent / max(float(spent.sum()), 1.0)
    left = max(0.0, use.gil * float(on_core.sum()) - float(on_core[kept].sum()))
    held = left * seen / max(float(seen.sum()), 1e-9)
    shares = np.minimum(1.0, np.divide(held, spent, out=np.zeros(len(locks)), where=spent > 0))
    shares[shares >= ALL_PYTHON] = 1.0
    found: Floats = np.where(kept, 1.0, shares[which])
    return found


def _in_spans(stretches: Stretches, starts: Integers, ends: Integers) -> NDArray[np.bool_]:
    """Tell which stretches without a lock lie in given times, which do not overlap."""
    if not len(starts):
        return np.zeros(len(stretches.lock), np.bool_)
    middle = stretches.start_ns + stretches.length_ns / 2
    place = np.maximum(np.searchsorted(starts, middle, side="right") - 1, 0)
    within: NDArray[np.bool_] = (
        (starts[place] <= middle) & (middle <= ends[place]) & (stretches.lock == 0)
    )
    return within
