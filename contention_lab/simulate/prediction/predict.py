"""The whole question: how long would the recorded batch take, as it is and with each remedy?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import batch_of
from contention_lab.simulate.batch.crew import crew_of
from contention_lab.simulate.batch.run import StuckError
from contention_lab.simulate.batch.target import target_of
from contention_lab.simulate.prediction.forecast import Budget, Forecaster
from contention_lab.simulate.prediction.question import fixes
from contention_lab.simulate.prediction.recorded_run import recorded_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.crew import Crew
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.prediction.forecast import Forecast, Gain
    from contention_lab.simulate.prediction.question import Fix
    from contention_lab.simulate.prediction.recorded_run import RecordedRun
    from contention_lab.trace import Trace

OF_TASKS: Final = "asyncio"
"""How the types of locks begin that tasks of an event loop share."""


class PredictionError(Exception):
    """A trace of which nothing can be predicted: one line, why and what to do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to predict.

    Attributes
    ----------
    threads
        Thread counts, ascending; none: the recorded one, powers of two to twice as many, cores.
    cores
        Cores of the machine; None: those of the recording.
    gil
        False: as on a free-threaded build.
    fixes
        Remedies as written; none: all that apply.
    """

    threads: tuple[int, ...] = ()
    cores: int | None = None
    gil: bool = True
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """One remedy, predicted.

    Attributes
    ----------
    fix
        The remedy.
    curve
        Forecasts, one for each thread count.
    gain
        What it brings with the thread count that is compared.
    """

    fix: Fix
    curve: tuple[Forecast, ...]
    gain: Gain


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer.

    Attributes
    ----------
    recorded
        The recorded run, recorded and predicted.
    crew, batch, target
        Who worked, on what, and the lock that remedies are for; None without a lock.
    cores, gil
        What was asked.
    at
        The thread count at which remedies are compared.
    outside_ns
        Time before and after the batch, which stays as it is.
    curve
        As it is, one forecast for each thread count.
    options
        Remedies, by what they bring, the most first.
    left_out
        What could not be simulated, and why.
    """

    recorded: RecordedRun
    crew: Crew
    batch: Batch
    target: Target | None
    cores: int
    gil: bool
    at: int
    outside_ns: float
    curve: tuple[Forecast, ...]
    options: tuple[Option, ...]
    left_out: tuple[str, ...] = ()


def predict(
    trace: Trace,
    locks: Sequence[int],
    calibration: Calibration,
    *,
    recorded_cores: int,
    asked: Asked | None = None,
    budget: Budget | None = None,
) -> Prediction:
    """Predict.

    Parameters
    ----------
    trace
        A recording of level `profile` or `trace`.
    locks
        Ids of the lock that remedies are for.
    calibration
        Costs of the host.
    recorded_cores
        Cores that the recorded program could use.
    asked
        What to predict.
    budget
        How much to simulate.

    Raises
    ------
    PredictionError
        No thread worked, or only one, which runs tasks.
    RemedyError
        A remedy is unknown, or makes no sense here.
    """
    asked = asked or Asked()
    notes = []
    if locks and trace.lock(locks[0]).type.startswith(OF_TASKS):
        notes.append(f"`{trace.lock(locks[0]).label}` is a lock of tasks, which are not simulated")
        locks = ()
    crew = crew_of(trace, locks)
    if crew is None:
        raise PredictionError("no thread of this recording did any work: nothing to predict")
    if _is_event_loop(trace, crew):
        raise PredictionError(
            "the work is that of tasks of an event loop, which take turns on one thread: more "
            "threads or other locks would not change that (`diagnose` says who keeps them waiting)"
        )
    batch = batch_of(trace, crew)
    if not batch.work_ns > 0:
        raise PredictionError("no thread of this recording did any work: nothing to predict")
    cores = asked.cores or recorded_cores
    threads = asked.threads or thread_counts(batch.threads, cores)
    measured = Forecaster(calibration, recorded_cores, budget=budget or Budget())
    recorded = recorded_run(batch, crew, measured)
    model = replace(
        measured.missing(recorded.miss if recorded.is_missed else 0.0), cores=cores, gil=asked.gil
    )
    curve = model.curve(batch, threads)
    if not asked.gil:
        locks = takes_over(trace, curve[-1]) or locks
    target = target_of(trace, batch, locks, cores) if locks else None
    at = batch.threads if batch.threads in threads and asked.gil else threads[-1]
    outside = max(0.0, float(trace.duration_ns - crew.wall_ns))
    options, left_out = [], notes
    if target is not None and target.ids:
        for fix in fixes(target, asked.fixes):
            try:
                changed = model.curve(fix.applied(batch), threads)
            except StuckError as error:
                left_out.append(f"{fix.text}: {error}")
                continue
            place = threads.index(at)
            gain = model.gain(curve[place], changed[place])
            if fix.at_best:
                gain = replace(gain, low=min(gain.low, 1.0))
            options.append(Option(fix, changed, gain))
    # What brings the same to two digits stays in the order of kinds: what can be done comes first.
    options.sort(key=lambda option: (option.fix.at_best, -float(f"{option.gain.times:.2g}")))
    return Prediction(
        recorded, crew, batch, target, cores, asked.gil, at, outside, curve, tuple(options),
        tuple(left_out),
    )  # fmt: skip


def _is_event_loop(trace: Trace, crew: Crew) -> bool:
    """Tell whether all the work was done by one thread that runs tasks."""
    loops = {thread.native_id for thread in trace.threads.values() if thread.is_task}
    members = {trace.thread(id_).native_id for id_ in crew.members}
    return len(members) == 1 and members <= loops


def thread_counts(recorded: int, cores: int) -> tuple[int, ...]:
    """Return thread counts worth a look: powers of two beyond what was recorded and there is."""
    last = 2 * max(recorded, cores)
    powers = [1 << power for power in range(13) if 1 << power <= last]
    return tuple(sorted({*powers, recorded, min(cores, 4096)}))


def takes_over(trace: Trace, forecast: Forecast) -> tuple[int, ...]:
    """Return the ids of the lock that is owned most in a forecast, with those made beside it."""
    owned = {id_: share for id_, share in forecast.used.items() if id_ and id_ in trace.locks}
    if not owned:
        return ()
    first = trace.lock(max(owned, key=lambda id_: owned[id_]))
    return tuple(
        lock.id
        for lock in trace.locks.values()
        if (lock.label, lock.type, lock.site) == (first.label, first.type, first.site)
    )
