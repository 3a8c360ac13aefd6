"""The diagnosis of several processes of one program.

Each is diagnosed by itself, and the locks that they share once more, over all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.processes import across_processes, of_one_run, with_sites_of_makers
from contention_lab.diagnosis.ranking import verdict
from contention_lab.diagnosis.thresholds import MOSTLY
from contention_lab.diagnosis.trace_diagnosis import diagnose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.diagnosis.finding import Diagnosis, Finding
    from contention_lab.trace import Trace

_NOT_SUMS: Final = frozenset({"wall_s", "gil_share"})


def diagnose_together(traces: Sequence[Trace]) -> Diagnosis:
    """Return what limits a program of several processes.

    Parameters
    ----------
    traces
        One of each process, at least one. Those of other runs than the first are left out, and
        said to be.

    Returns
    -------
    Diagnosis
        Findings about locks that processes share, and those about each process, the most severe
        first: each explains a share of the wall time of what it is about. Of several processes the
        totals are sums, but for `wall_s`, the longest, and `gil_share`, the largest.

    Raises
    ------
    ValueError
        There is no trace.
    """
    if not traces:
        raise ValueError("diagnose_together needs at least one trace")
    traces, others = of_one_run(traces)
    left_out = tuple(
        f"{trace.path}: left out, since it did not run at the same time" for trace in others
    )
    if len(traces) == 1:
        only = diagnose(traces[0])
        return replace(only, problems=(*only.problems, *left_out))
    traces = with_sites_of_makers(traces)
    shared = across_processes(traces)
    # Where no lock is used by two of them, each one is known to have been looked at with the rest.
    facts = {} if shared is not None else {"processes": len(traces)}
    alone = [diagnose(replace(trace, meta={**trace.meta, **facts})) for trace in traces]
    together = diagnose(shared) if shared is not None else None
    across = together.findings if together is not None else ()
    locks = {finding.lock for finding in across if finding.lock is not None}
    findings = list(across)
    for trace, diagnosis in zip(traces, alone, strict=True):
        findings += (
            replace(finding, summary=f"In process {trace.pid}: {finding.summary}")
            for finding in diagnosis.findings
            if finding.lock is None or finding.lock not in locks
        )
    findings.sort(key=lambda finding: -finding.severity)
    kind = verdict(findings)
    return replace(
        alone[0],
        verdict=kind,
        summary=_summary(kind, findings, alone, together),
        findings=tuple(findings),
        totals=_totals([diagnosis.totals for diagnosis in alone]),
        problems=(*_each(traces, [diagnosis.problems for diagnosis in alone]), *left_out),
        not_seen=tuple(dict.fromkeys(line for diagnosis in alone for line in diagnosis.not_seen)),
    )


def _summary(
    kind: str,
    findings: Sequence[Finding],
    alone: Sequence[Diagnosis],
    together: Diagnosis | None,
) -> str:
    for finding in findings:
        if finding.kind == kind:
            return finding.summary
    if together is not None and _wait_s(together) >= MOSTLY * sum(map(_wait_s, alone)) > 0.0:
        # Waited for in one process, held in another: only all of them together can tell.
        return (
            f"No lock limits any of {len(alone)} processes. Of those they share: {together.summary}"
        )
    longest = max(alone, key=lambda diagnosis: diagnosis.totals["wall_s"] or 0.0)
    return f"No lock limits any of {len(alone)} processes. Of the longest: {longest.summary}"


def _wait_s(diagnosis: Diagnosis) -> float:
    return float(diagnosis.totals["lock_wait_s"] or 0.0)


def _totals(
    totals: Sequence[Mapping[str, float | int | None]],
) -> dict[str, float | int | None]:
    added: dict[str, float | int | None] = {}
    for name in totals[0]:
        known = [value for one in totals if (value := one.get(name)) is not None]
        added[name] = (max if name in _NOT_SUMS else sum)(known) if known else None
    return added


def _each(traces: Sequence[Trace], lines: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(
        f"{trace.path}: {line}" for trace, own in zip(traces, lines, strict=True) for line in own
    )
