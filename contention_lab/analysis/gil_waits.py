"""Waits for the GIL and holds of it: how much of each thread, and where in the code.

It takes the exact events of the layer below Python (`Trace.gil_waits`, `Trace.gil_holds`,
`Trace.gil_totals`), and says nothing where the trace has none: samples are not its business. Waits
for the GIL are no lock contention; no other table counts them.

Sums of a thread are from the totals, and so hold every wait and every hold. What is said of sites
is from the holds that made somebody wait, which is all the blame there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.sites import user_frame
from contention_lab.trace.layer_schema import GilEventFlag

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from contention_lab.trace import Frame, Thread, Trace
    from contention_lab.trace.records import Records

    Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ThreadGil:
    """The GIL in the life of one thread.

    Attributes
    ----------
    thread
        The thread.
    wall_s
        From its first event to its end, or the end of the recording.
    waits, wait_s
        How often and how long it waited for the GIL, in seconds.
    holds, held_s
        How often and how long it had the GIL.
    asked
        How often it had been asked to give the GIL up when it did: it was made to.
    share
        Of the time in which any thread had the GIL, the part in which this one had it.
    """

    thread: Thread
    wall_s: float
    waits: int
    wait_s: float
    holds: int
    held_s: float
    asked: int
    share: float

    @property
    def voluntary(self) -> int:
        """How often it gave the GIL up by itself, to sleep or to let native code run."""
        return self.holds - self.asked


@dataclass(frozen=True, slots=True)
class GilSite:
    """A place in the user's code where threads wait for the GIL or have it while others do.

    Attributes
    ----------
    site
        The innermost frame of user code; None for threads that were not running any.
    waited_s
        Threads at this place waited so long for the GIL.
    held_s
        Threads that gave it up at this place had had it so long while others waited.
    """

    site: Frame | None
    waited_s: float
    held_s: float


@dataclass(frozen=True, slots=True)
class GilWaits:
    """What a trace says of the GIL.

    Attributes
    ----------
    threads
        Every thread that had the GIL, those that waited longest first.
    sites
        Where, those of the longest waits first.
    wait_s
        Sum over the threads.
    held_s
        Time in which somebody had the GIL.
    waits_in_locks_s
        Waits, within `wait_s`, of threads that held a recorded lock meanwhile.
    """

    threads: tuple[ThreadGil, ...]
    sites: tuple[GilSite, ...]
    wait_s: float
    held_s: float
    waits_in_locks_s: float


def gil_waits(trace: Trace) -> GilWaits | None:
    """Sum up the waits for the GIL and the holds of it.

    Parameters
    ----------
    trace
        A trace.

    Returns
    -------
    GilWaits or None
        None for a trace without such events: without the layer below Python, or without a GIL.
    """
    totals = trace.gil_totals
    if not len(totals):
        return None
    held_s = float(totals["held_ns"].sum()) / 1e9
    threads = [_thread(trace, row, held_s) for row in totals]
    waits = trace.gil_waits
    in_locks = waits[waits["lock"] != 0]
    return GilWaits(
        threads=tuple(sorted(threads, key=lambda row: (-row.wait_s, row.thread.id))),
        sites=_sites(trace),
        wait_s=float(totals["wait_ns"].sum()) / 1e9,
        held_s=held_s,
        waits_in_locks_s=float(_seconds(in_locks).sum()),
    )


def _thread(trace: Trace, row: np.void, all_held_s: float) -> ThreadGil:
    thread = trace.thread(int(row["thread"]))
    end_ns = thread.end_ns or trace.duration_ns
    held_s = int(row["held_ns"]) / 1e9
    return ThreadGil(
        thread=thread,
        wall_s=max(0, end_ns - thread.start_ns) / 1e9,
        waits=int(row["waits"]),
        wait_s=int(row["wait_ns"]) / 1e9,
        holds=int(row["holds"]),
        held_s=held_s,
        asked=int(row["asked"]),
        share=held_s / all_held_s if all_held_s else 0.0,
    )


def _sites(trace: Trace) -> tuple[GilSite, ...]:
    waited, held = _by_stack(trace.gil_waits), _by_stack(trace.gil_holds)
    sums: dict[Frame | None, list[float]] = {}
    for column, by_stack in enumerate((waited, held)):
        for stack, seconds in by_stack.items():
            site = user_frame(trace.stack(stack))
            sums.setdefault(site, [0.0, 0.0])[column] += seconds
    rows = [GilSite(site, *seconds) for site, seconds in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.waited_s, -row.held_s, str(row.site))))


def _by_stack(events: Records) -> Mapping[int, float]:
    """Seconds by stack; 0 stands for none. Events that wait for a stack go to the next with one."""
    sums: dict[int, float] = {}
    for thread in np.unique(events["thread"]):
        own = events[events["thread"] == thread]
        own = own[np.argsort(own["end_ns"], kind="stable")]
        settled = (own["stack"] != 0) | (own["flags"] & int(GilEventFlag.NO_FRAMES) != 0)
        # The number of the next settled event; what comes after the last one belongs to nothing.
        number = np.cumsum(settled) - settled
        stacks = np.append(own["stack"][settled], 0)
        for stack, seconds in zip(
            stacks, np.bincount(number, _seconds(own), len(stacks)), strict=True
        ):
            if seconds:
                sums[int(stack)] = sums.get(int(stack), 0.0) + float(seconds)
    return sums


def _seconds(events: Records) -> Seconds:
    start, end = events["start_ns"].astype(np.int64), events["end_ns"].astype(np.int64)
    seconds: Seconds = np.maximum(end - start, 0) / 1e9
    return seconds
