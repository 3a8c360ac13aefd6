"""The page of a command's sweep: `command_page(result)`.

It chooses what goes into the page and in which words; the template says where. All figures come
from the result.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from contention_lab.report import conditions
from contention_lab.report.command_plot import command_plot, value_said
from contention_lab.report.document import render
from contention_lab.report.plot_pair import plot_pair
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Mapping


def command_page(result: Mapping[str, Any]) -> str:
    """One HTML file that explains the sweep of a command.

    Parameters
    ----------
    result : mapping
        A `result.json` as `scale` writes it, schema 1.

    Returns
    -------
    str
        The page; the same for the same input.
    """
    fit, machine = result["fit"], result["machine"]
    verdict = fit["verdict"]
    context = {
        "version": result["package_version"],
        "title": name(result["name"]),
        "kind": verdict["kind"],
        "calm": verdict["kind"] == "scales",
        "verdict_of": "",
        "heading": verdict["summary"],
        "warnings": [*conditions.load_warnings(machine), *_missing(result)],
        "facts": [
            conditions.cores_said(machine.get("cores")),
            conditions.moment_said(result["started"]),
        ],
        "leads_title": "What follows",
        "lines": verdict["lines"],
        "notes": fit["notes"],
        "plots": plot_pair(partial(command_plot, result), "values"),
        "measured_by": _measured_by(result),
        "cores": machine.get("cores"),
        "is_time": fit["kind"] == "time",
        "per_thread": fit["work"] == "per-thread",
        "rows": [_row(result, point) for point in result["points"]],
        "forecast": [_forecast_row(result, row) for row in fit["predictions"]],
        "chosen": fit["chosen"],
        "law_lines": result["law_lines"],
        "machine": conditions.machine_rows(machine, result["python"], result["package_version"]),
        "command": result["command"],
        "traces": [point["trace"] for point in result["points"] if point["trace"]],
    }
    return render("command.html", {}, context)


def _missing(result: Mapping[str, Any]) -> list[str]:
    missing = result["missing"]
    if not missing:
        return []
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return [f"Not all runs are there: {missing[0]}{more}."]


def _measured_by(result: Mapping[str, Any]) -> str:
    figure = result["figure"]
    if figure["source"] == "wall clock":
        return "Wall clock time of the whole command, its start included."
    noun = "Time" if figure["source"] == "time" else "Rate"
    return f"{noun} that the command prints, the last match of `{figure['pattern']}`."


def _row(result: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    values = point["values"]
    return {
        "threads": point["threads"],
        "median": value_said(result, point["median"]),
        "range": f"{value_said(result, min(values))} to {value_said(result, max(values))}",
        "runs": ", ".join(value_said(result, value) for value in values),
        "cpu_s": point["cpu_s"],
        "cores_busy": point["cpu_s"] / point["wall_s"] if point["wall_s"] > 0 else None,
    }


def _forecast_row(result: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "threads": f"{row['threads']:g}",
        "value": value_said(result, row["value"]),
        "low": value_said(result, row["low"]),
        "high": value_said(result, row["high"]),
    }
