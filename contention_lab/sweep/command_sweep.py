"""A sweep of a command over thread counts: its runs, and what they come to.

The runs are made as those of a scenario are (see `runner`); the law, the verdict and the forecast
are those of `scaling`, as `contention-lab fit` gives them. Nothing is concluded here.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.sweep.child import RunFailed
from contention_lab.sweep.command_run import run_command
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.figure import last_lines
from contention_lab.sweep.host import machine_facts, python_facts, usable_cores
from contention_lab.sweep.machine_load import load_warnings
from contention_lab.sweep.plan import Point, Run, planned_runs
from contention_lab.sweep.runner import make_runs
from contention_lab.sweep.versions import package_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contention_lab.scaling.conclusion import Conclusion
    from contention_lab.scaling.law import FloatArray
    from contention_lab.scaling.measurements import Measurements, Work
    from contention_lab.sweep.command import Command
    from contention_lab.sweep.runner import Observer, Outcome

SCHEMA: Final = 1
FORECAST: Final = (1.5, 2.0, 3.0, 4.0)
"""Of the largest thread count: where the value is predicted."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a sweep of a command came to.

    Attributes
    ----------
    conclusion
        Law, verdict and forecast.
    result
        What `result.json` holds.
    report
        Path of the page.
    """

    conclusion: Conclusion
    result: Mapping[str, Any]
    report: Path


def sweep_command(
    command: Command, folder: Path, observer: Observer, *, resume: bool = False
) -> Outcome:
    """Make every run that is not made yet; as `run_sweep`.

    Raises
    ------
    SweepError
        The command cannot be run, its output does not say what was asked for, or the folder
        belongs to another sweep.
    """
    command.figure.check()
    command.check()
    points = [Point(command.name, threads) for threads in command.threads]

    def make(run: Run, trace: Path | None) -> dict[str, Any]:
        threads = run.point.threads
        if trace is not None:
            made = run_command(command.recorded_at(threads, trace))
            if not trace.is_file() or trace.stat().st_size == 0:
                raise RunFailed(f"nothing was recorded{last_lines(made.output)}")
            return {"wall_s": made.wall_s, "cpu_s": made.cpu_s}
        words = command.words_at(threads)
        made = run_command(words)
        try:
            value = command.figure.value(made.wall_s, made.output)
        except SweepError as error:
            raise SweepError(f"{shlex.join(words)}: {error}") from error
        return {"wall_s": made.wall_s, "cpu_s": made.cpu_s, "value": value}

    def plan(seed: int) -> Sequence[Run]:
        return planned_runs(points, command.repeats, seed, traced=command.recorded)

    return make_runs(plan, make, command.identity(), folder, observer, resume=resume)


def conclude_command(
    command: Command, outcome: Outcome, folder: Path, *, work: Work | None
) -> CommandResult:
    """Fit what was measured, and write `result.json` and `report.html` into `folder`.

    Raises
    ------
    SweepError
        Nothing was measured.
    AmbiguousWorkError
        `work` is None, and it matters.
    """
    # Not needed to measure, and long to import.
    from contention_lab.report import command_page
    from contention_lab.scaling.conclusion import conclude
    from contention_lab.scaling.measurements import measured

    points, missing = _points(command, outcome)
    if not points:
        raise SweepError(f"no run was measured{': ' + missing[0] if missing else ''}")
    table = measured(
        [point["threads"] for point in points for _ in point["values"]],
        [value for point in points for value in point["values"]],
        kind=command.figure.kind,
        work=work,
    )
    most = points[-1]["threads"]
    conclusion = conclude(table, at=sorted({round(most * factor) for factor in FORECAST}))
    result = {
        "schema": SCHEMA,
        "name": command.name,
        "command": shlex.join(command.words),
        "figure": command.figure.to_json(),
        "repeats": command.repeats,
        "started": outcome.started.isoformat(timespec="seconds"),
        "wall_s": outcome.wall_s,
        "order_seed": outcome.seed,
        "package_version": package_version(),
        "python": python_facts(),
        "machine": {
            **machine_facts(),
            "load_before": outcome.load_before.to_json(),
            "load_during": outcome.load_during.to_json(),
            "warnings": load_warnings(outcome.load_before, outcome.load_during),
        },
        "complete": not missing,
        "missing": missing,
        "points": points,
        "fit": conclusion.to_json(),
        "law_lines": list(conclusion.table_lines()),
        "curves": _curves(conclusion, table, points),
    }
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    report = folder / "report.html"
    report.write_text(command_page(result), encoding="utf-8")
    return CommandResult(conclusion, result, report)


def _points(command: Command, outcome: Outcome) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what the timed runs of each thread count gave, and a line for each missing run."""
    points, missing = [], []
    for threads in command.threads:
        point = Point(command.name, threads)
        runs = [Run(point, repeat) for repeat in range(command.repeats)]
        found = [outcome.results[run] for run in runs if run in outcome.results]
        for run in runs:
            if run not in outcome.results:
                reason = outcome.failures.get(run, "not run")
                missing.append(f"{point}, run {(run.repeat or 0) + 1}: {reason}")
        traced = Run(point, None)
        if command.recorded and traced not in outcome.results:
            missing.append(f"{point}, traced run: {outcome.failures.get(traced, 'not run')}")
        if found:
            values = [result["value"] for result in found]
            points.append(
                {
                    "threads": threads,
                    "values": values,
                    "median": median(values),
                    "wall_s": median(result["wall_s"] for result in found),
                    "cpu_s": median(result["cpu_s"] for result in found),
                    "trace": point.trace_name if traced in outcome.results else None,
                }
            )
    return points, missing


def _curves(
    conclusion: Conclusion, table: Measurements, points: Sequence[Mapping[str, Any]]
) -> dict[str, list[list[float]]]:
    """Return lines to draw, as [threads, value]: the ideal, and the chosen law if there is one.

    The ideal ends where the cores do, by what a thread of the smallest count uses of one.
    """
    first = points[0]
    last = max(prediction.threads for prediction in conclusion.predictions)
    fine = np.geomspace(first["threads"], last, 97)
    used = max(first["cpu_s"] / (first["wall_s"] * first["threads"]), 1e-3)
    lanes = np.minimum(fine, max(usable_cores() / used, first["threads"]))
    base_s = float(np.median(table.seconds[table.threads == table.threads[0]]))
    lines = {"ideal": _line(table, fine, base_s * first["threads"] / lanes)}
    if conclusion.comparison is not None:
        law = conclusion.comparison.chosen.fit
        lines["law"] = _line(table, fine, np.asarray(law.seconds(fine)))
    return lines


def _line(table: Measurements, threads: FloatArray, seconds: FloatArray) -> list[list[float]]:
    rows: list[list[float]] = np.column_stack(
        [threads, table.in_own_unit(threads, seconds)]
    ).tolist()
    return rows
