"""What remedies would bring, by simulation of the recorded work: `speedup` and its interval.

Findings come with bounds of their own, which follow from how much was waited. Where the trace has
what the simulator needs, and the simulator explains the recorded run, remedies that it knows get a
prediction instead. It changes no verdict and no order of findings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.capacity_limit import enough_permits
from contention_lab.diagnosis.worst_lock import ids_of
from contention_lab.simulate.batch import batch_of, crew_of
from contention_lab.simulate.batch.run import StuckError
from contention_lab.simulate.batch.target import target_of
from contention_lab.simulate.calibration import default_calibration
from contention_lab.simulate.prediction.forecast import QUICK, Forecaster
from contention_lab.simulate.prediction.question import fixes
from contention_lab.simulate.prediction.recorded_run import recorded_run
from contention_lab.simulate.remedies import RemedyError
from contention_lab.simulate.time_use import FEWEST_SAMPLES, has_layer
from contention_lab.trace import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock, Finding, Remedy
    from contention_lab.simulate.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.prediction.forecast import Forecast, Gain
    from contention_lab.trace import Trace

SIMULATED: Final = "simulated"
FINDINGS: Final = 3
"""Findings whose remedies are simulated: those that people read."""
EVENTS: Final = 60_000
"""Waits and holds that are read for it at most, from the middle of the recording."""
STEPS: Final = 20_000
MOST_RECORDS: Final = 5_000_000
"""With more waits and holds, looking for those of each thread takes long: bounds have to do."""
LEAST_WALL_NS: Final = 20_000_000
"""Of a shorter batch the beginnings of threads are most, which are not simulated."""
EXPLAINED: Final = 0.25
"""A model that misses the recorded run by more predicts nothing."""
WRITTEN: Final = {
    "narrow": "narrow={site}",
    "shard": "shard=8",
    "move-io-out": "move-out={site}",
    "park": "lock=parking",
    "block": "lock=parking",
    "raise": "permits={permits}",
}
"""Remedies of findings as the simulator knows them."""
NO_GIL: Final = "no-gil"


def with_gains(file: CaseFile, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings whose remedies have predictions, where there are any.

    Parameters
    ----------
    file
        The trace.
    findings
        Its findings, the most severe first.
    """
    found = list(findings)
    models: dict[AccusedLock | None, _Model | None] = {None: None}
    for place, finding in enumerate(found[:FINDINGS]):
        if any(one.kind in WRITTEN or one.kind == NO_GIL for one in finding.remedies):
            if finding.lock not in models:
                models[finding.lock] = _model(file, finding)
            found[place] = _predicted(finding, models[finding.lock])
    return tuple(found)


def _predicted(finding: Finding, model: _Model | None) -> Finding:
    if model is None:
        return finding
    remedies = tuple(model.applied(one, finding) for one in finding.remedies)
    if sum(one.basis == SIMULATED for one in remedies) > 1:
        # The most promising first; those without a prediction stay behind, as they were.
        remedies = tuple(sorted(remedies, key=lambda one: -(one.speedup or 0.0)))
    return replace(finding, remedies=remedies)


class _Model:
    """One lock, ready for remedies."""

    def __init__(
        self, forecaster: Forecaster, batch: Batch, target: Target, now: Forecast, outside_ns: float
    ) -> None:
        self._forecaster = forecaster
        self._batch, self._target, self._now = batch, target, now
        self._outside_ns = outside_ns

    def applied(self, remedy: Remedy, finding: Finding) -> Remedy:
        """Return a remedy with its prediction, if it can be simulated."""
        try:
            gain = self._gain(remedy.kind, finding)
        except (RemedyError, StuckError):
            return remedy
        if gain is None:
            return remedy
        return replace(
            remedy,
            speedup=gain.times,
            speedup_low=gain.low,
            speedup_high=max(gain.high, gain.times),
            basis=SIMULATED,
        )

    def _gain(self, kind: str, finding: Finding) -> Gain | None:
        batch, forecaster = self._batch, self._forecaster
        if kind == NO_GIL:
            forecaster = replace(forecaster, gil=False)
        elif kind in WRITTEN:
            text = WRITTEN[kind].format(site=self._site(finding), permits=_permits(finding))
            (fix,) = fixes(self._target, [text])
            batch = fix.applied(batch)
        else:
            return None
        after = forecaster.forecast(batch, batch.threads)
        return forecaster.gain(self._now, after, self._outside_ns)

    def _site(self, finding: Finding) -> str:
        code = next((party.code for party in finding.culprits if party.code is not None), None)
        if code is not None and self._target.site(code.place) is not None:
            return code.place
        return str(self._target.sites[0]) if self._target.sites else ""


def _permits(finding: Finding) -> int:
    """Return to how many permits the limit is to be raised; 0 where it is not a semaphore's."""
    now, needed = (finding.evidence.get(name) for name in ("permits", "needed_permits"))
    return 0 if now is None or needed is None else enough_permits(int(now), needed)


def _model(file: CaseFile, finding: Finding) -> _Model | None:
    """Return the model of a finding's lock; None if the trace does not tell enough."""
    trace = file.trace
    cores = file.program.cores
    records = len(trace.wait_columns) + len(trace.hold_columns)
    if finding.lock is None or cores is None or records > MOST_RECORDS:
        return None
    if not _tells_enough(trace) or any(one.is_task for one in trace.threads.values()):
        return None
    if finding.lock is not None and finding.lock.native_library:
        return None  # of what is done under a lock of native code there is no record
    ids = ids_of(trace, finding.lock)
    crew = crew_of(trace, ids)
    if crew is None or crew.wall_ns < LEAST_WALL_NS:
        return None
    if not all(trace.thread(member).cpu_ns for member in crew.members):
        return None
    batch = batch_of(trace, crew, events=EVENTS, steps=STEPS)
    if not batch.work_ns > 0.0 or batch.awaits_others:
        return None
    # The same trace gives the same diagnosis everywhere: no costs of this host.
    forecaster = Forecaster(default_calibration(cores), cores, budget=QUICK)
    try:
        run = recorded_run(batch, crew, forecaster)
    except StuckError:
        return None
    target = target_of(trace, batch, ids, cores)
    if abs(run.error) > EXPLAINED or not target.ids:
        return None
    outside_ns = max(0.0, float(trace.duration_ns - crew.wall_ns))
    missed = forecaster.missing(run.miss if run.is_missed else 0.0)
    return _Model(missed, batch, target, run.predicted, outside_ns)


def _tells_enough(trace: Trace) -> bool:
    """Tell whether a trace says what threads did with their time, and not only who waited."""
    if trace.level == Level.COUNTERS:
        return False
    return has_layer(trace) or len(trace.states) >= FEWEST_SAMPLES
