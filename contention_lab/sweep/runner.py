"""Making the runs of a sweep, each in a fresh process, one after the other.

It draws no conclusion. A run that fails is remembered with the reason and the sweep goes on; only
when the first few runs, or the first few traced ones, have all failed does it stop, since the rest
would fail as well. Ctrl-C ends the sweep where it is and keeps what is finished.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from contention_lab.sweep.child import RunFailed, run_child
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.host import python_facts
from contention_lab.sweep.journal import Journal
from contention_lab.sweep.machine_load import MachineLoad, cpu_times, load_between, observed_load
from contention_lab.sweep.plan import Run, planned_runs, points_of
from contention_lab.sweep.versions import package_version
from contention_lab.sweep.workload import check_parameters, workload_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contention_lab.sweep.scenario import Scenario

_HOPELESS: Final = 3
"""So many failures before the first success of timed or of traced runs end the sweep."""


class Observer(Protocol):
    """Who is told how a sweep proceeds."""

    def planned(self, runs: int) -> None:
        """Take note how many runs there are to make."""

    def started(self, run: Run) -> None:
        """Take note that a run was started."""

    def finished(self, run: Run, result: Mapping[str, Any] | None) -> None:
        """Take note that a run ended; None where it failed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sweep measured.

    Attributes
    ----------
    results
        What every finished run measured, earlier sweeps that were resumed included.
    failures
        Why the others failed, in the order of the plan.
    seed
        Seed of the order of runs.
    started
        When the sweep started.
    wall_s
        Seconds it took, earlier sweeps not included.
    """

    results: Mapping[Run, Mapping[str, Any]]
    failures: Mapping[Run, str]
    interrupted: bool
    seed: int
    started: datetime
    wall_s: float
    load_before: MachineLoad
    load_during: MachineLoad


def run_sweep(
    scenario: Scenario,
    folder: Path,
    observer: Observer,
    *,
    resume: bool = False,
    seed: int | None = None,
) -> Outcome:
    """Make every run of a scenario that is not made yet.

    Parameters
    ----------
    folder
        Where the journal and the traces go; made where missing.
    resume
        Keep the finished runs that are there, instead of starting afresh.
    seed
        Seed of the order of runs; drawn where None.

    Raises
    ------
    SweepError
        Nothing can be measured: no such workload, the folder belongs to another sweep, or every
        run fails.
    """
    source = workload_source(scenario)
    check_parameters(scenario)
    parameters = scenario.variant_parameters()

    def make(run: Run, trace: Path | None) -> dict[str, Any]:
        return run_child(
            {
                "workload": source,
                "parameters": parameters[run.point.variant],
                "threads": run.point.threads,
                "trace": None if trace is None else str(trace),
            }
        )

    def plan(seed: int) -> Sequence[Run]:
        return planned_runs(points_of(scenario), scenario.repeats, seed)

    return make_runs(
        plan, make, _identity(scenario, source), folder, observer, resume=resume, seed=seed
    )


def make_runs(
    plan: Callable[[int], Sequence[Run]],
    make: Callable[[Run, Path | None], dict[str, Any]],
    identity: Mapping[str, Any],
    folder: Path,
    observer: Observer,
    *,
    resume: bool = False,
    seed: int | None = None,
) -> Outcome:
    """Make every planned run that is not made yet.

    Parameters
    ----------
    plan
        The runs in their order, from the seed of the order.
    make
        Makes a run and returns what it measured; of a traced one, given the path of the trace.
        `RunFailed` for a run that failed.
    identity
        What must be equal for runs to belong to one result, see `Journal`.
    folder, observer, resume, seed
        As for `run_sweep`.

    Raises
    ------
    SweepError
        The folder belongs to another sweep, or every run fails.
    """
    (folder / "traces").mkdir(parents=True, exist_ok=True)
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    with Journal(folder, identity, chosen, resume=resume) as journal:
        return _Sweep(plan(journal.seed), make, folder, journal, observer).outcome()


def _identity(scenario: Scenario, source: str) -> dict[str, Any]:
    """Return what must be equal for runs to belong to one result."""
    identity: dict[str, Any] = {
        "scenario": scenario.name,
        "workload": scenario.workload,
        "parameters": scenario.variant_parameters(),
        "package": package_version(),
        "python": python_facts(),
    }
    if source.endswith(".py"):
        identity["script"] = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    return identity


class _Sweep:
    """One sweep under way."""

    def __init__(
        self,
        plan: Sequence[Run],
        make: Callable[[Run, Path | None], dict[str, Any]],
        folder: Path,
        journal: Journal,
        observer: Observer,
    ) -> None:
        self._plan = plan
        self._make_run = make
        self._folder = folder
        self._journal = journal
        self._observer = observer
        self._failures: dict[Run, str] = {}

    def outcome(self) -> Outcome:
        started = datetime.now(UTC)
        clock = time.monotonic()
        load_before = observed_load()
        used = cpu_times()
        interrupted = False
        try:
            pending = [run for run in self._plan if not self._is_done(run)]
            self._observer.planned(len(pending))
            for run in pending:
                self._make(run)
        except KeyboardInterrupt:
            interrupted = True
        return Outcome(
            results=self._journal.results,
            failures=self._failures,
            interrupted=interrupted,
            seed=self._journal.seed,
            started=started,
            wall_s=time.monotonic() - clock,
            load_before=load_before,
            load_during=load_between(used, cpu_times()),
        )

    def _is_done(self, run: Run) -> bool:
        trace = self._folder / run.point.trace_name
        return run in self._journal.results and (not run.traced or trace.is_file())

    def _make(self, run: Run) -> None:
        self._observer.started(run)
        trace = self._folder / run.point.trace_name if run.traced else None
        try:
            result = self._make_run(run, trace)
        except RunFailed as error:
            self._failures[run] = str(error)
            self._observer.finished(run, None)
            failed = sum(other.traced == run.traced for other in self._failures)
            made = any(other.traced == run.traced for other in self._journal.results)
            if failed >= _HOPELESS and not made:
                kind = "traced run" if run.traced else "run"
                raise SweepError(f"every {kind} fails; {run.point}: {error}") from error
        else:
            self._journal.add(run, result)
            self._observer.finished(run, result)
