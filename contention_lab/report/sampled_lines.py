"""What samples show of threads and locks: shares of their time, and nothing that is counted.

Where threads were sampled and not recorded, nobody knows how often a lock was taken, or how long
it was held: such figures are absent here, not 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.diagnosis.sampled.facts import Facts
from contention_lab.report.lock_lines import SHOWN, LockLine, LockLines
from contention_lab.report.palette import SAMPLED_STATES
from contention_lab.report.quantity import count, counted
from contention_lab.report.thread_bars import shown_bars
from contention_lab.report.thread_time_plot import Bar
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from contention_lab.diagnosis.sampled.facts import Mask
    from contention_lab.trace import Trace

DOINGS: Final = {
    "run": (Doing.RUNNING, Doing.HOLDS_GIL),
    "spin": (Doing.SPINS,),
    "park": (Doing.AWAITS_LOCK,),
    "gil": (Doing.AWAITS_GIL,),
    "coordination": (Doing.COORDINATES,),
    "io": (Doing.IO,),
    "other": (Doing.SLEEPS, Doing.UNKNOWN),
}
"""What counts as each of `SAMPLED_STATES`."""


def sampled_bars(trace: Trace) -> tuple[Bar, ...]:
    """One bar per thread, of what it was found to be doing, with the number of its samples."""
    facts = Facts(trace)
    found = []
    for thread in np.unique(facts.thread).tolist():
        mine = facts.thread == thread
        parts = {key: facts.seconds(mine & facts.does(*doings)) for key, doings in DOINGS.items()}
        samples = float(facts.count[mine].sum())
        known = trace.threads.get(thread)
        label = known.label if known is not None else f"thread {thread}"
        found.append(Bar(label, parts, SAMPLED_STATES, f"{count(samples)}×"))
    return shown_bars(found)


def sampled_lock_lines(trace: Trace) -> LockLines:
    """Return the locks that threads were found waiting for, the most waited for first."""
    facts = Facts(trace)
    everything = np.ones(len(facts.doing), dtype=np.bool_)
    waiting = facts.does(Doing.AWAITS_LOCK, Doing.SPINS) & (facts.lock != 0)
    found: list[tuple[float, LockLine]] = []
    for lock in np.unique(facts.lock[waiting]).tolist():
        mine = waiting & (facts.lock == lock)
        spins = mine & facts.does(Doing.SPINS)
        share = (
            f"{facts.share_of_moments(mine)} of the time"
            if facts.together
            else f"{facts.share_of(mine, everything)} of the samples"
        )
        line = LockLine(
            lock=trace.lock(lock),
            locks=1,
            acquires=None,
            contended=None,
            timed_out=0,
            failed_tries=0,
            wait_s=_seconds(facts, mine),
            spin_s=_seconds(facts, spins),
            park_s=_seconds(facts, mine & ~spins) if facts.sees_sleep else None,
            gil_s=None,
            hold_s=None,
            utilisation=None,
            wait_p50_s=None,
            wait_p99_s=None,
            wait_max_s=None,
            hold_max_s=None,
            threads=len(facts.threads(mine)),
            open_waits=0,
            missing_waits=0,
            waited_share=share,
        )
        found.append((facts.seconds(mine), line))
    found.sort(key=lambda one: -one[0])
    lines = [line for _, line in found]
    rest = lines[SHOWN:]
    rest_s = sum(line.wait_s or 0.0 for line in rest)
    return LockLines(tuple(lines[:SHOWN]), len(rest), rest_s, None)


def _seconds(facts: Facts, chosen: Mask) -> float | None:
    """Return the time that samples stand for, None where nothing says how often they were taken."""
    return facts.seconds(chosen) if facts.pace_known else None


def samples_said(trace: Trace) -> str:
    """Return how many samples a trace is made of, as a reader of a view wants to be told."""
    if not trace.is_sampled:
        return ""
    return counted(round(float(trace.samples["count"].sum())), "sample")


def pace_known(trace: Trace) -> bool:
    """Return whether it is known how much time passed: not of samples without times and a rate."""
    return not trace.is_sampled or Facts(trace).pace_known


def sources_read_ns(trace: Trace) -> int:
    """Return when a program had read its sources, Unix time: files written later are not shown."""
    about = trace.meta.get("samples")
    said = about.get("sources_read_unix_ns") if isinstance(about, dict) else None
    return said if type(said) is int and trace.is_sampled else trace.start_unix_ns
