"""Measuring this host: what its locks, its memory and its scheduler cost.

The loops that are timed are native threads without the GIL, pinned to CPUs, at least two of them
alive whatever is measured (with one, a C library may leave out its atomic operations). Bursts are
short and repeated, and the lower quartile counts, since whatever disturbs takes time. It does not
ask whether the machine is quiet: the command line does (`cli/calibrate.py`).
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from contention_lab.simulate.calibration import (
    Calibration,
    CalibrationError,
    as_point,
    host_facts,
    slice_of_linux_ns,
)
from contention_lab.simulate.cost_fit import Measured, fitted_costs
from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

KINDS: Final = ("test-and-set", "back-off", "ticket", "mcs", "parking", "adaptive")
"""Kinds that are measured, in the order of their numbers in `native/probe_locks.h`."""
RATIOS: Final = ((0.0, 0.0), (200.0, 1000.0), (1000.0, 1000.0))
"""(hold, think) times in ns at which each is measured."""
BURST_NS: Final = 1e6
"""About how long one burst of a measurement takes: less than a time slice."""
BURSTS: Final = 15
PAIRS: Final = 6
"""Pairs of CPUs between which a cache line is passed."""
SAMPLES: Final = 200
SLICE_TIME_NS: Final = 300_000_000
FEWEST_SLICES: Final = 5
LIMIT_NS: Final = 500_000_000
"""No single burst takes longer."""
PASS_LIMIT_NS: Final = 50_000_000
"""Nor passing a cache line to and fro, which takes a millisecond where both threads have a core."""
MOST_WAITERS: Final = 64
_GROWING: Final = ("test-and-set", "ticket", "adaptive")
"""Kinds whose waiters all watch one cache line."""


class Probe(Protocol):
    """What measures: the extension `_probe`."""

    def contend(
        self,
        kind: int,
        cpus: Sequence[int],
        hold_ns: float,
        think_ns: float,
        operations: int,
        limit_ns: int,
        /,
    ) -> list[tuple[int, int]]:
        """Return (operations, ns) of each thread."""

    def transfer(self, cpu: int, other_cpu: int, rounds: int, limit_ns: int, /) -> float:
        """Return the ns a cache line takes from one thread to another."""

    def handover(self, cpu: int, other_cpu: int, rounds: int, limit_ns: int, /) -> float:
        """Return the ns of waking the other thread and going to sleep."""

    def wakeups(
        self, cpu: int, other_cpu: int, rounds: int, limit_ns: int, /
    ) -> tuple[list[int], list[int]]:
        """Return latencies of wake-ups and the times of the calls that wake, in ns."""

    def slices(self, cpu: int, other_cpu: int, most: int, limit_ns: int, /) -> list[int]:
        """Return the ns a thread ran, each time, while another wanted its CPU."""

    def refused_sleep(self, rounds: int, /) -> float:
        """Return the ns of a system call that does not go to sleep after all."""


class Scheduling(NamedTuple):
    """What the scheduler and memory cost, in ns."""

    machine: Machine
    transfer_ns: float
    park_ns: float
    wake_call_ns: float


def probe_here() -> Probe:
    """Return the extension that measures.

    Raises
    ------
    CalibrationError
        If it was not built.
    """
    try:
        from contention_lab.simulate import _probe
    except ImportError as error:
        raise CalibrationError(f"the measuring extension was not built: {error}") from error
    return _probe


def measured_calibration(
    cpus: Sequence[int],
    *,
    probe: Probe | None = None,
    progress: Callable[[str], None] = lambda _: None,
    warnings: Sequence[str] = (),
) -> Calibration:
    """Measure this host.

    Parameters
    ----------
    cpus
        Numbers of the CPUs to use, one or more.
    probe
        What measures; the extension by default.
    progress
        Told what is measured next.
    warnings
        What is known to make it doubtful; kept with the result.

    Returns
    -------
    Calibration
        Costs of every kind of lock, and of the scheduler.

    Raises
    ------
    CalibrationError
        If this is no Linux, or the extension was not built.
    """
    measuring = probe_here() if probe is None else probe
    try:
        progress("cache line, wake-ups, switches, slice")
        scheduling = measured_scheduling(measuring, cpus)
        points: dict[str, list[Measured]] = {}
        for kind in KINDS:
            progress(kind)
            points[kind] = measured_lock(measuring, kind, cpus)
    except TimeoutError as error:
        raise CalibrationError(f"{error}: the machine is too busy to be measured") from error
    except NotImplementedError as error:
        raise CalibrationError(f"{error}; give --calibration a file of another host") from error
    costs = {
        kind: costs_of_kind(kind, found, scheduling, len(cpus)) for kind, found in points.items()
    }
    return Calibration(
        host=host_facts(len(cpus)),
        machine=scheduling.machine,
        transfer_ns=scheduling.transfer_ns,
        costs=costs,
        measured_at=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        warnings=tuple(warnings),
        points=tuple(_as_rows(points)),
    )


def measured_scheduling(probe: Probe, cpus: Sequence[int]) -> Scheduling:
    """Measure cache lines, wake-ups, switches and slices."""
    first = cpus[0]
    refused_ns = probe.refused_sleep(20_000)
    handover_ns = _undisturbed(_successes(partial(probe.handover, first, first, 2_000, LIMIT_NS)))
    switch_ns = max(handover_ns - 2.0 * refused_ns, 0.1 * handover_ns)
    same, same_calls = probe.wakeups(first, first, SAMPLES, LIMIT_NS)
    wake_same_ns = max(_undisturbed(same) - switch_ns, refused_ns)
    wake_other_ns, wake_call_ns = wake_same_ns, _undisturbed(same_calls)
    transfer_ns = LockCosts().transfer_ns
    if len(cpus) > 1:
        other, other_calls = probe.wakeups(first, cpus[1], SAMPLES, LIMIT_NS)
        wake_other_ns, wake_call_ns = _undisturbed(other), _undisturbed(other_calls)
        pairs = [*combinations(cpus, 2)]
        transfer_ns = statistics.median(
            min(_successes(partial(probe.transfer, one, two, 3_000, PASS_LIMIT_NS)))
            for one, two in pairs[:: max(1, len(pairs) // PAIRS)]
        )
    slices = probe.slices(first, first, 10_000, SLICE_TIME_NS)
    slice_ns = (
        statistics.median(slices) if len(slices) >= FEWEST_SLICES else slice_of_linux_ns(len(cpus))
    )
    machine = Machine(
        cores=len(cpus),
        slice_ns=slice_ns,
        switch_ns=switch_ns,
        wake_same_ns=wake_same_ns,
        wake_other_ns=wake_other_ns,
    )
    return Scheduling(machine, transfer_ns, refused_ns, wake_call_ns)


def measured_lock(probe: Probe, kind: str, cpus: Sequence[int]) -> list[Measured]:
    """Measure one kind of lock at every ratio, with one thread up to one for each CPU."""
    number = KINDS.index(kind)
    points = []
    for hold_ns, think_ns in RATIOS:
        for threads in thread_counts(len(cpus)):
            operations = int(BURST_NS / (hold_ns + think_ns + 50.0) / threads) + 100
            bursts = [
                probe.contend(number, cpus[:threads], hold_ns, think_ns, operations, LIMIT_NS)
                for _ in range(BURSTS)
            ]
            cycle_ns = _undisturbed(
                statistics.fmean(spent / max(done, 1) for done, spent in burst) for burst in bursts
            )
            points.append(Measured(hold_ns, think_ns, threads, cycle_ns))
    return points


def thread_counts(cpus: int) -> list[int]:
    """Return the thread counts to measure: powers of two, and one for each CPU."""
    return sorted({*(2**power for power in range(cpus.bit_length()) if 2**power <= cpus), cpus})


def costs_of_kind(
    kind: str, points: Sequence[Measured], scheduling: Scheduling, cpus: int
) -> LockCosts:
    """Return a lock's costs: what can be timed directly, and the rest fitted.

    Where there are few CPUs to measure with, hand-offs of locks that all waiters watch go on with
    half a cache-line transfer for each further waiter (Boyd-Wickizer et al. 2012).
    """
    timed = replace(
        POLICIES[kind].defaults,
        park_ns=scheduling.park_ns,
        wake_call_ns=scheduling.wake_call_ns,
        transfer_ns=scheduling.transfer_ns,
        handoff_ns=((1.0, scheduling.transfer_ns),),
    )
    alone = [point for point in points if point.threads == 1]
    bare = min(point.cycle_ns - point.hold_ns - point.think_ns for point in alone)
    timed = replace(timed, acquire_ns=max(bare, 1.0), release_ns=0.0)
    if cpus < 2 or kind in ("parking", "back-off"):
        return timed
    if kind == "adaptive":
        return _continued(replace(timed, spin_ns=0.0), scheduling.transfer_ns)
    fitted = fitted_costs(POLICIES[kind], points, scheduling.machine)
    fitted = replace(fitted, park_ns=timed.park_ns, wake_call_ns=timed.wake_call_ns)
    if not fitted.handoff_ns:
        fitted = replace(fitted, handoff_ns=timed.handoff_ns)
    return _continued(fitted, scheduling.transfer_ns) if kind in _GROWING else fitted


def _continued(costs: LockCosts, transfer_ns: float) -> LockCosts:
    waiters, handoff_ns = costs.handoff_ns[-1]
    if waiters >= MOST_WAITERS:
        return costs
    last = handoff_ns + (MOST_WAITERS - waiters) * transfer_ns / 2.0
    return replace(costs, handoff_ns=(*costs.handoff_ns, (float(MOST_WAITERS), last)))


def _successes(measure: Callable[[], float]) -> list[float]:
    """Measure `BURSTS` times; leave out those in which one of the threads did not get a core."""
    found = []
    for _ in range(BURSTS):
        try:
            found.append(measure())
        except TimeoutError as error:
            last = error
    if not found:
        raise last
    return found


def _undisturbed(values: Iterable[float]) -> float:
    """Return the lower quartile."""
    return float(statistics.quantiles([*values], n=4, method="inclusive")[0])


def _as_rows(points: dict[str, list[Measured]]) -> list[dict[str, Any]]:
    return [as_point(kind, *point) for kind, found in points.items() for point in found]
