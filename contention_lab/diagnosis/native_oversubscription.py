"""Finding `native-oversubscription`: a native library's threads want more cores than there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.sampled_parties import seen_at, stack_samples
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_LOOKS,
    LEAST_NATIVE_CPU,
    LEAST_OVERLOAD,
    LEAST_OVERLOADED,
)
from contention_lab.diagnosis.wording import names, number, percent
from contention_lab.trace import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.trace import Trace

KIND: Final = "native-oversubscription"


@dataclass(frozen=True, slots=True)
class Overload:
    """How many threads wanted a CPU while native ones were among them.

    Attributes
    ----------
    looks
        How often the recorder looked.
    share
        Share of the time that more native threads than there are cores wanted one, or with the
        program's own threads half as many again.
    runnable
        Threads that wanted a CPU then, on average.
    native
        Of them: not made by Python.
    native_cpu_s
        CPU time of threads not made by Python.
    delay_s
        Time all threads together waited for a CPU.
    involuntary
        How often a thread was taken off its core.
    """

    looks: int
    share: float
    runnable: float
    native: float
    native_cpu_s: float
    delay_s: float
    involuntary: int


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding if it is true of the program.

    It is true if all of these are:

    - for a fifth of the recording or more, half as many threads again as there are cores wanted
      one at the same time, and more than half of them were not made by Python: the pool of a
      numerical library, say;
    - these threads used at least a third of the process's CPU time.

    As many native threads as cores are what such libraries start, and fine; so are Python threads
    in native code, of which each has one core at most. Waiting for locks of Python's does not come
    into it. The culprits are the same code as the victims: it calls the library. Severity is the
    share of the time, less what the cores could do.
    """
    cores = file.program.cores
    if cores is None or not file.program.cpu_s:
        return
    load = overload(file.trace, cores)
    if (
        load is None
        or load.looks < LEAST_LOOKS
        or load.share < LEAST_OVERLOADED
        or load.native_cpu_s < LEAST_NATIVE_CPU * file.program.cpu_s
    ):
        return
    severity = min(load.share * (1.0 - cores / load.runnable), LARGEST_SEVERITY)
    samples = stack_samples(file.trace)
    inside = (samples["state"] == State.RUNNABLE) | (samples["state"] == State.AWAITS_LOCK)
    victims = seen_at(file.trace, samples, inside, load.share * file.program.wall_s)
    where = f" under {names(victims, most=2)}" if victims else ""
    plural = "s" * (cores != 1)
    yield Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{number(load.runnable)} threads want a CPU at a time and there "
            f"{'are' if plural else 'is'} {cores} core{plural}: {number(load.native)} of them "
            f"belong to a native library{where}, for {percent(load.share)} of the run; let it use "
            "fewer threads, no lock of Python's is at fault."
        ),
        lock=None,
        victims=victims,
        culprits=victims,
        evidence={
            "runnable_threads": load.runnable,
            "native_runnable_threads": load.native,
            "cores": cores,
            "overloaded_share": load.share,
            "native_cpu_s": load.native_cpu_s,
            "cpu_wait_s": load.delay_s,
            "involuntary_switches": load.involuntary,
        },
        remedies=(
            Remedy(
                "limit-threads",
                "Limit the threads of the library to one for each Python thread that calls it, and "
                f"to {cores} in all (`threadpoolctl.threadpool_limits`, OPENBLAS_NUM_THREADS, "
                "OMP_NUM_THREADS). Where they spin for each other the gain can be many times more "
                "than the cores explain.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
        acquits=tuple(case.lock for case in file.cases if case.held.share("python") < 0.5),
    )


def overload(trace: Trace, cores: int) -> Overload | None:
    """Return what samples of the process say; None if there are none."""
    load = trace.load
    if len(load) < 2:
        return None
    native = load["native_runnable"].astype(np.float64)
    runnable = native + load["runnable"]
    over = (runnable >= LEAST_OVERLOAD * cores) & (native > runnable / 2)
    time = load["time_ns"].astype(np.float64)
    weight = np.diff(time, prepend=0.0)
    whole = float(weight.sum())
    over_ns = float(weight[over].sum())

    def mean(values: np.ndarray) -> float:
        return float((values * weight)[over].sum()) / over_ns if over_ns else 0.0

    return Overload(
        looks=int(np.count_nonzero(over)),
        share=over_ns / whole if whole else 0.0,
        runnable=mean(runnable),
        native=mean(native),
        native_cpu_s=_growth(load["native_cpu_ns"]) / 1e9,
        delay_s=_growth(load["delay_ns"]) / 1e9,
        involuntary=int(_growth(load["involuntary"])),
    )


def _growth(totals: np.ndarray) -> float:
    """Return by how much a total has grown, threads that ended meanwhile notwithstanding."""
    steps = np.diff(totals.astype(np.float64))
    return float(np.maximum(steps, 0.0).sum())
