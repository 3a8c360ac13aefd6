"""How the threads of a trace used the time in which they did not wait for locks.

Of a thread's own time, a part was CPU time, of which a part needed the GIL; a part it was blocked,
in input and output; and in the rest it wanted a core or the GIL and had none, which a simulation
must find again by itself. The parts come from CPU clocks and samples, so they are shares, one set
for each thread; `own_time.py` tells its holds from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.trace.schema import GilFlag, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.trace import Trace

FEWEST_SAMPLES: Final = 20
"""Fewer samples say nothing."""

GRAIN_NS: Final = 100e3
"""Where Python and native code alternate, and nobody recorded how, they do so about this often."""
ALL_PYTHON: Final = 0.9
"""Share of the CPU time with the GIL from which all of it is Python code: the rest is what taking
the GIL costs, and calls too short to tell."""


@dataclass(frozen=True, slots=True)
class TimeUse:
    """Shares of a thread's own time.

    Attributes
    ----------
    cpu
        Share spent on a core.
    asleep
        Share spent blocked, without core or GIL.
    gil
        Share of the time on a core that needed the GIL; 0 on builds without one.
    grain_ns
        CPU time, in ns, from one time that the thread takes the GIL to the next, on average.
    """

    cpu: float
    asleep: float
    gil: float
    grain_ns: float = GRAIN_NS


def has_gil(trace: Trace) -> bool:
    """Tell whether the recorded interpreter had a GIL; true where the trace does not say."""
    python = trace.meta.get("python")
    return bool(python.get("gil", True)) if isinstance(python, dict) else True


def time_use(trace: Trace, thread: int, own_ns: float) -> TimeUse:
    """Return what a thread did with its own time.

    Parameters
    ----------
    trace
        The recording.
    thread
        Its id.
    own_ns
        Time in which it waited for nobody, in ns.
    """
    on_core = work_cpu_ns(trace, thread)
    cpu = min(1.0, on_core / own_ns) if own_ns > 0 and on_core > 0 else 1.0
    return TimeUse(
        cpu=cpu,
        asleep=min(1.0 - cpu, blocked_share(trace, thread)),
        gil=gil_share(trace, thread, cpu * own_ns),
        grain_ns=_grain_ns(trace, thread, cpu * own_ns),
    )


def work_cpu_ns(trace: Trace, thread: int) -> float:
    """Return the CPU time of a thread that it did not spend spinning for locks, in ns."""
    counters = trace.counters[trace.counters["thread"] == thread]
    spinning = float(counters["spin_cpu_ns"].sum() or counters["spin_ns"].sum())
    return max(0.0, float(trace.thread(thread).cpu_ns) - spinning)


def blocked_share(trace: Trace, thread: int) -> float:
    """Return the share of a thread's samples outside lock waits in which it was blocked.

    Of a thread with few samples, the share of all threads.
    """
    states = trace.states[trace.states["state"] != State.AWAITS_LOCK]
    mine = states["state"][states["thread"] == thread]
    chosen = mine if len(mine) >= FEWEST_SAMPLES else states["state"]
    return float(np.mean(chosen == State.BLOCKED)) if len(chosen) >= FEWEST_SAMPLES else 0.0


def gil_share(trace: Trace, thread: int, cpu_ns: float) -> float:
    """Return the share of a thread's CPU time that needed the GIL.

    From the layer below Python where it was there, else from samples of the GIL's holder; all of it
    where neither says anything, as in a program of Python code alone.
    """
    if not has_gil(trace):
        return 0.0
    totals = trace.gil_totals
    held = totals["held_ns"][totals["thread"] == thread]
    if len(held) and cpu_ns > 0:
        return _rounded(float(held.sum()) / cpu_ns)
    samples = trace.gil
    if len(samples) < FEWEST_SAMPLES or cpu_ns <= 0:
        return 1.0
    period_ns = float(samples["time_ns"][-1] - samples["time_ns"][0]) / (len(samples) - 1)
    mine = (samples["holder"] == thread) & ((samples["flags"] & int(GilFlag.HELD)) != 0)
    return _rounded(float(np.count_nonzero(mine)) * period_ns / cpu_ns)


def _rounded(share: float) -> float:
    return 1.0 if share >= ALL_PYTHON else share


def _grain_ns(trace: Trace, thread: int, cpu_ns: float) -> float:
    totals = trace.gil_totals
    taken = int(totals["holds"][totals["thread"] == thread].sum())
    return cpu_ns / taken if taken and cpu_ns > 0 else GRAIN_NS


def has_layer(trace: Trace) -> bool:
    """Tell whether the layer below Python saw this recording."""
    return len(trace.gil_totals) > 0


def run_delay_ns(trace: Trace, thread: int) -> float | None:
    """Return how long a thread was ready and had no core, in ns; None if nobody measured that."""
    states = trace.states
    mine = states[(states["thread"] == thread) & (states["cpu_ns"] > 0)]
    if len(mine) < 2:
        return None
    return float(mine["delay_ns"].max()) - float(mine["delay_ns"].min())


def sampled_with_gil(trace: Trace, thread: int) -> NDArray[np.float64]:
    """Return the times at which samples saw that a thread had the GIL, float64."""
    samples = trace.gil
    mine = (samples["holder"] == thread) & ((samples["flags"] & int(GilFlag.HELD)) != 0)
    times: NDArray[np.float64] = samples["time_ns"][mine].astype(np.float64)
    return times
