"""The page of one or more trace files: `trace_page(traces, diagnoses)`.

The same sections as the page of a sweep, without what only a sweep knows: how time grows with
threads.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from contention_lab.report import conditions
from contention_lab.report.conditions import CALM_KINDS
from contention_lab.report.difference_section import run_differences
from contention_lab.report.document import render
from contention_lab.report.finding_view import finding_view
from contention_lab.report.flame_kinds import shown_kinds
from contention_lab.report.flame_section import groups, main_point
from contention_lab.report.lock_order_plot import lock_order_plots
from contention_lab.report.page_data import page_data
from contention_lab.report.plot_pair import PlotPair
from contention_lab.report.point_view import PointView, point_view
from contention_lab.report.quantity import seconds
from contention_lab.report.sampled_lines import pace_known, samples_said, sources_read_ns
from contention_lab.report.source_lines import SourceBook, source_book
from contention_lab.report.source_sites import sites_of_findings, sites_of_views
from contention_lab.report.thread_time_plot import rows_plot, used_states
from contention_lab.report.uncollected import uncollected
from contention_lab.report.visible_text import name, short_path
from contention_lab.trace.cells import cell_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.report.palette import State
    from contention_lab.trace import Trace

FINDINGS_SHOWN: Final = 3
"""Findings of a trace that are told at the top."""


@uncollected()
def trace_page(
    traces: Sequence[Trace], diagnoses: Sequence[Mapping[str, Any]], *, source: bool = True
) -> str:
    """One HTML file that explains recordings.

    Parameters
    ----------
    traces : sequence of Trace
        At least one.
    diagnoses : sequence of mapping
        `Diagnosis.to_json()` of each trace, in the same order.
    source : bool
        Show lines of the program's source, where its files are as they were.

    Returns
    -------
    str
        The page; the same for the same input, and the same source.

    Raises
    ------
    ValueError
        No trace, or not as many diagnoses as traces.
    """
    if not traces or len(traces) != len(diagnoses):
        raise ValueError("trace_page needs at least one trace, and one diagnosis for each")
    names = [PurePath(trace.path).name or f"trace {i}" for i, trace in enumerate(traces, 1)]
    views = [
        point_view(f"run-{index}", label, label, None, trace)
        for index, (label, trace) in enumerate(zip(names, traces, strict=True))
    ]
    current = main_point(views)
    assert current is not None
    at = views.index(current)
    trace, diagnosis = traces[at], diagnoses[at]
    python, machine = trace.meta.get("python") or {}, trace.meta.get("machine") or {}
    version = str(trace.meta.get("package_version") or "")
    data, timelines = page_data(views)
    context = {
        "version": version,
        "title": name(names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"),
        "kind": diagnosis.get("verdict") or "",
        "calm": diagnosis.get("verdict") in CALM_KINDS,
        "verdict_of": names[at] if len(names) > 1 else "",
        "heading": diagnosis.get("summary") or "No verdict was reached.",
        "findings": [finding_view(finding) for finding in _findings(diagnosis)],
        "leads_title": "The other traces",
        "lines": _other_verdicts(names, diagnoses, at),
        "warnings": [*trace.problems, *_basis(trace, diagnosis)],
        "facts": _facts(trace, python, machine),
        "source": _source(traces, diagnoses, views) if source else None,
        "points": views,
        "current": current,
        "timelines": timelines,
        "point_groups": groups(views),
        "thread_plots": {view.key: _plots(view) for view in views if view.bars},
        "states": {view.key: used_states(view.bars) for view in views},
        "explained_states": _explained_states(views),
        "order_plots": {v.key: lock_order_plots(v.order, f"{v.key}-order") for v in views},
        "flame_kinds": shown_kinds(view.flames for view in views),
        **run_differences(views, current),
        "shows_gil": any(view.gil is not None for view in views),
        "shows_native": any(view.native.seen or view.native.rows for view in views),
        "machine": conditions.machine_rows(machine, python, version),
        "unseen": conditions.unseen(
            python,
            native_layer=trace.meta.get("native_layer") is True,
            sampled=trace.is_sampled,
        ),
    }
    return render("trace.html", data, context)


def _basis(trace: Trace, diagnosis: Mapping[str, Any]) -> list[str]:
    """Say of a trace of samples what it is made of, which is the first thing it has not seen."""
    notes = diagnosis.get("not_seen") or ()
    return (
        [f"Samples, not a recording. Not known: {notes[0]}."] if trace.is_sampled and notes else []
    )


def _explained_states(views: Sequence[PointView]) -> list[tuple[tuple[State, ...], bool]]:
    """Return the states of bars of what was recorded, and of samples, and which it is."""
    kinds = {
        is_sampled: [v for v in views if bool(v.samples) == is_sampled]
        for is_sampled in (False, True)
    }
    return [
        (used_states([bar for view in mine for bar in view.bars]), is_sampled)
        for is_sampled, mine in kinds.items()
        if mine
    ]


def _plots(view: PointView) -> PlotPair:
    return PlotPair(
        rows_plot(view.bars, f"{view.key}-wide", 900, "wide"),
        rows_plot(view.bars, f"{view.key}-narrow", 340, "narrow"),
    )


def _source(
    traces: Sequence[Trace], diagnoses: Sequence[Mapping[str, Any]], views: Sequence[PointView]
) -> SourceBook:
    findings = (
        (site, sources_read_ns(trace))
        for trace, diagnosis in zip(traces, diagnoses, strict=True)
        for site in sites_of_findings(trace, _findings(diagnosis))
    )
    cells = cell_texts(trace.meta for trace in traces)
    return source_book([*findings, *sites_of_views(views)], cells)


def _findings(diagnosis: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = diagnosis.get("findings") or ()
    return found[:FINDINGS_SHOWN]


def _other_verdicts(
    names: Sequence[str], diagnoses: Sequence[Mapping[str, Any]], at: int
) -> list[str]:
    return [
        f"{name(label)}: {diagnosis.get('summary') or 'no verdict.'}"
        for index, (label, diagnosis) in enumerate(zip(names, diagnoses, strict=True))
        if index != at
    ]


def _facts(trace: Trace, python: Mapping[str, Any], machine: Mapping[str, Any]) -> list[str]:
    program = trace.meta.get("program")
    return [
        text
        for text in (
            short_path(str(program)) if program else "",
            _length_said(trace),
            conditions.cores_said(machine.get("cores")),
            conditions.python_said(python),
            conditions.moment_said(str(trace.meta.get("start_time") or "")),
        )
        if text
    ]


def _length_said(trace: Trace) -> str:
    """Return for how long it was looked at; of samples that may be any time apart, how many."""
    if not pace_known(trace):
        return samples_said(trace)
    return f"{'sampled' if trace.is_sampled else 'recorded'} for {seconds(trace.duration_ns / 1e9)}"
