"""`diagnose`: from a trace to a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contention_lab.diagnosis import healthy
from contention_lab.diagnosis.case_file import CaseFile
from contention_lab.diagnosis.finding import EVENTS, SAMPLES, Diagnosis
from contention_lab.diagnosis.gains import with_gains
from contention_lab.diagnosis.path_rank import by_path
from contention_lab.diagnosis.ranking import ranked, verdict
from contention_lab.diagnosis.registry import FINDINGS, TOGETHER
from contention_lab.diagnosis.sampled.verdict import diagnose_samples
from contention_lab.diagnosis.wording import brief, duration
from contention_lab.trace import not_seen

if TYPE_CHECKING:
    from contention_lab.trace import Trace


def diagnose(trace: Trace) -> Diagnosis:
    """Return what limits the recorded program.

    Parameters
    ----------
    trace
        A trace; a damaged one is diagnosed as far as it could be read. One of samples is
        diagnosed by what samples can say.

    Returns
    -------
    Diagnosis
        The same for the same trace.
    """
    if trace.is_sampled:
        return diagnose_samples(trace)
    file = CaseFile(trace)
    found = [one for find in FINDINGS for one in find(file)]
    found = [replace(one, summary=brief(one.summary)) for one in found]
    findings = by_path(file, ranked(found, together=TOGETHER))
    kind = verdict(findings)
    first = next((finding for finding in findings if finding.kind == kind), None)
    return Diagnosis(
        verdict=kind,
        summary=first.summary if first else brief(healthy.summary(file)),
        findings=with_gains(file, findings),
        totals=totals(file),
        python=_mapping(trace.meta.get("python")),
        machine=_mapping(trace.meta.get("machine")),
        problems=trace.problems,
        not_seen=(*_stopped(file), *not_seen(trace)),
        gil_source=_gil_source(file),
    )


def totals(file: CaseFile) -> dict[str, float | int | None]:
    """Return sums over the program, times in seconds.

    `gil_share` is the share of the time that anybody had the GIL, None where there is none or
    nothing saw it. `stopped_s` is what the process was stopped for: no other figure has a part in
    it. `gil_wait_s` is the waiting for it after waits for locks; `gil_wait_total_s` all
    waiting for it, None where it was only sampled.
    """
    status = file.trace.status

    def stated(*names: str) -> int:
        return 0 if status is None else sum(int(status[name]) for name in names)

    return {
        "wall_s": file.program.wall_s,
        "stopped_s": file.stopped.total_ns / 1e9,
        "cpu_s": file.program.cpu_s,
        "threads": len(file.times),
        "lock_wait_s": sum(row.wait_s for row in file.rows),
        "spin_s": sum(row.spin_s for row in file.rows),
        "gil_share": None if file.gil is None else file.gil.held_share,
        "gil_wait_s": sum(row.gil_s for row in file.rows),
        "gil_wait_total_s": (
            float(file.trace.gil_totals["wait_ns"].sum()) / 1e9
            if len(file.trace.gil_totals)
            else None
        ),
        "coordination_wait_s": sum(time.coordination_s for time in file.times),
        "dropped": stated("dropped_waits", "dropped_holds"),
        "overhead_s": stated("self_ns", "writer_cpu_ns") / 1e9,
    }


def _stopped(file: CaseFile) -> tuple[str, ...]:
    """Say for how long the process was stopped, if it was."""
    if not file.stopped.total_ns:
        return ()
    lasted = duration(file.stopped.total_ns / 1e9)
    return (f"{lasted} in which the process was stopped, or the machine slept",)


def _gil_source(file: CaseFile) -> str | None:
    if file.gil is None:
        return None
    return EVENTS if file.gil.exact else SAMPLES


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
