"""The page of a sweep: `sweep_page(result, traces)`.

It chooses what goes into the page and in which words; the templates say where. All figures come
from the result and the traces; a figure of a traced run is said to be one.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from contention_lab.report import conditions
from contention_lab.report.conditions import CALM_KINDS
from contention_lab.report.difference_section import run_differences
from contention_lab.report.document import listed, render
from contention_lab.report.flame_kinds import shown_kinds
from contention_lab.report.flame_section import groups, main_point
from contention_lab.report.lock_order_plot import lock_order_plots
from contention_lab.report.page_data import page_data
from contention_lab.report.plot_pair import PlotPair, plot_pair
from contention_lab.report.point_view import PointView, point_view
from contention_lab.report.prediction_section import prediction_section
from contention_lab.report.source_lines import source_book
from contention_lab.report.source_sites import sites_of_views
from contention_lab.report.sweep_table import point_rows, thread_counts, variant_rows
from contention_lab.report.thread_time_plot import (
    Bar,
    columns_plot,
    rows_plot,
    together,
    used_states,
)
from contention_lab.report.time_plot import time_plot
from contention_lab.report.uncollected import uncollected
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from contention_lab.trace import Trace


MISSING_SHOWN: Final = 4
"""Missing runs that are named at the top of the page."""


@uncollected()
def sweep_page(
    result: Mapping[str, Any], traces: Mapping[tuple[str, int], Trace], *, source: bool = True
) -> str:
    """One HTML file that explains a sweep.

    Parameters
    ----------
    result : mapping
        A `result.json` of schema 1.
    traces : mapping
        By variant and number of threads; points without a trace are shown without its views.
    source : bool
        Show lines of the program's source, where its files are as they were.

    Returns
    -------
    str
        The page; the same for the same input, and the same source.
    """
    scenario, machine = result["scenario"], result["machine"]
    views = _views(result, traces)
    current = main_point(views)
    variants = variant_rows(result)
    bars = _bars(result, views)
    fits = [fit for fit in result.get("fits", ()) if fit["model"] == "usl"]
    verdict = result.get("verdict") or {}
    lines = list(verdict.get("lines") or [verdict.get("summary") or "No verdict was reached."])
    rows = point_rows(result)
    data, timelines = page_data(views, sweep=True)
    context = {
        "version": result["package_version"],
        "title": name(scenario["title"] or scenario["name"]),
        "kind": verdict.get("kind") or "",
        "calm": verdict.get("kind") in CALM_KINDS,
        "verdict_of": "",
        "heading": lines[0],
        "leads_title": "Why, and what to do",
        "lines": lines[1:],
        "warnings": _warnings(result, traces),
        "facts": _facts(result, [len(row.runs_s) for row in rows]),
        "cores": machine.get("cores"),
        "repeats_said": conditions.runs_said([len(row.runs_s) for row in rows]),
        "time_plots": plot_pair(partial(_draw_times, result), "times"),
        "state_heading": _state_heading(variants, bars),
        "state_plots": _state_plots(variants, bars),
        "states": used_states([bar for _, bar in bars]),
        "variants": variants,
        "thread_counts": thread_counts(variants),
        "point_rows": rows,
        "fits": fits,
        "fit_error": fits[0].get("mean_error") if len(fits) == 1 else None,
        "bounds": [bound for bound in result.get("bounds", ()) if bound.get("text")],
        "source": source_book(sites_of_views(views)) if source else None,
        "points": views,
        "current": current,
        "prediction": prediction_section(result),
        "timelines": timelines,
        "point_groups": groups(views),
        "order_plots": {v.key: lock_order_plots(v.order, f"{v.key}-order") for v in views},
        "flame_kinds": shown_kinds(view.flames for view in views),
        **run_differences(views, current),
        "machine": conditions.machine_rows(machine, result["python"], result["package_version"]),
        "unseen": _unseen(result),
        "command": conditions.sweep_command(scenario),
        "story": scenario.get("story") or "",
        "parameters": conditions.parameters(scenario),
    }
    return render("sweep.html", data, context)


def _views(result: Mapping[str, Any], traces: Mapping[tuple[str, int], Trace]) -> list[PointView]:
    """One view for each trace, in the order of variants and threads."""
    order = {variant: index for index, variant in enumerate(result["variants"])}
    several = len(result["variants"]) > 1
    found = []
    for variant, threads in sorted(traces, key=lambda key: (order.get(key[0], len(order)), key)):
        said = f"{threads} thread{'' if threads == 1 else 's'}"
        label = f"{variant}, {said}" if several else said
        key = re.sub(r"[^A-Za-z0-9]+", "-", f"run-{order.get(variant, len(order))}-{threads}")
        found.append(point_view(key, label, variant, threads, traces[variant, threads]))
    return found


def _bars(result: Mapping[str, Any], views: Sequence[PointView]) -> list[tuple[str, Bar]]:
    """Thread time of every traced point, with its variant: of the trace, else of the result."""
    traced = {(view.group, view.threads): view.bars for view in views}
    found = []
    for point in sorted(result["points"], key=lambda point: point["threads"]):
        threads = traced.get((point["variant"], point["threads"]))
        label = str(point["threads"])
        if threads:
            found.append((point["variant"], together(label, threads)))
        elif point.get("thread_s"):
            found.append((point["variant"], Bar(label, point["thread_s"])))
    return found


def _state_heading(variants: tuple[Any, ...], bars: list[tuple[str, Bar]]) -> str:
    if len(variants) > 1 and bars:
        return f"Where threads spend their time, at {bars[-1][1].label} threads"
    return "Where threads spend their time"


def _state_plots(variants: tuple[Any, ...], bars: list[tuple[str, Bar]]) -> PlotPair:
    """A bar for each thread count, or, of several variants, one each at the most threads."""
    if not any(bar.total for _, bar in bars):
        return PlotPair("", "")
    if len(variants) == 1:
        columns = [bar for _, bar in bars]

        def draw(identifier: str, width: int, height: int, css: str) -> Markup:
            return columns_plot(columns, "threads", identifier, width, height, css)

        return plot_pair(draw, "states")
    most = bars[-1][1].label
    by_variant = {variant: bar.seconds for variant, bar in bars if bar.label == most}
    rows = [Bar(v.variant, by_variant[v.variant]) for v in variants if v.variant in by_variant]

    def draw_rows(identifier: str, width: int, _height: int, css: str) -> Markup:
        return rows_plot(rows, identifier, width, css)

    return plot_pair(draw_rows, "states")


def _draw_times(
    result: Mapping[str, Any], identifier: str, width: int, height: int, css: str
) -> Markup | None:
    return time_plot(result, identifier, width, height, css)


def _facts(result: Mapping[str, Any], runs: list[int]) -> list[str]:
    machine = result["machine"]
    counts = (
        f"{min(runs)}" if len(set(runs)) == 1 else f"{min(runs)} to {max(runs)}" if runs else "0"
    )
    return [
        text
        for text in (
            conditions.cores_said(machine.get("cores")),
            conditions.python_said(result["python"]),
            f"{machine.get('system') or ''} {machine.get('release') or ''}".strip(),
            f"{counts} untraced and 1 traced run for each point",
            conditions.wall_said(result.get("wall_s")),
            conditions.moment_said(str(result.get("started") or "")),
        )
        if text
    ]


def _warnings(result: Mapping[str, Any], traces: Mapping[tuple[str, int], Trace]) -> list[str]:
    machine = result["machine"]
    found = list(machine.get("warnings") or conditions.load_warnings(machine))
    found.extend(
        f"{seen['variant']} has the shape {seen['shape']}; the scenario expects "
        f"{seen['expected_shape']}."
        for seen in result.get("observed") or ()
        if seen.get("as_expected") is False
    )
    missing = [str(line) for line in result.get("missing") or ()]
    if not result.get("complete", True) or missing:
        found.append("This sweep is not complete; its figures are those of the runs that ended.")
    found += missing[:MISSING_SHOWN]
    if len(missing) > MISSING_SHOWN:
        found.append(f"{len(missing) - MISSING_SHOWN} more runs are missing.")
    found.extend(_traceless(result, traces))
    return found


def _traceless(result: Mapping[str, Any], traces: Mapping[tuple[str, int], Trace]) -> Iterator[str]:
    """Say which points have figures but no trace."""
    without = [
        point
        for point in result["points"]
        if traces and (point["variant"], point["threads"]) not in traces
    ]
    if len(result["variants"]) > 1 and without:
        yield f"No trace could be read of {len(without)} of the {len(result['points'])} points."
    elif without:
        counts = listed([str(point["threads"]) for point in without])
        yield f"No trace could be read of the runs with {counts} threads."


def _unseen(result: Mapping[str, Any]) -> list[str]:
    lines = conditions.unseen(result["python"], native_layer=False)
    lines.append(
        "Times of the plot come from runs with recording off; everything about waiting and holding "
        "comes from one traced run for each point."
    )
    return lines
