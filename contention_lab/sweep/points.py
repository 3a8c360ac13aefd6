"""The points of a result: what the runs of each come to, and which are missing.

Medians and ranges come from the timed runs, thread time and holds from the traced one; a point
without both is missing, and the reason is said. It fits nothing and accuses nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from contention_lab.sweep.plan import Point, Run, points_of
from contention_lab.sweep.traced_run import TracedRun, read_traced_run, worst_label
from contention_lab.trace import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contention_lab.sweep.runner import Outcome
    from contention_lab.sweep.scenario import Scenario


@dataclass(slots=True)
class Series:
    """The points of one variant.

    Attributes
    ----------
    variant
        Its name.
    timed
        Results of the timed runs, by number of threads.
    traced
        The traced run, by number of threads; the same keys.
    traced_wall_s
        What the traced run took, seconds.
    """

    variant: str
    timed: dict[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    traced: dict[int, TracedRun] = field(default_factory=dict)
    traced_wall_s: dict[int, float] = field(default_factory=dict)

    def median_s(self) -> dict[int, float]:
        """Return the median batch time by number of threads, seconds."""
        return {
            threads: median(result["wall_s"] for result in self.timed[threads])
            for threads in sorted(self.timed)
        }

    def worst_lock(self) -> str | None:
        """Return the label of the lock that was waited for longest; see `worst_label`."""
        return worst_label(self.traced)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the points as `result.json` has them."""
        worst = self.worst_lock()
        return [self._point(threads, worst) for threads in sorted(self.timed)]

    def _point(self, threads: int, worst: str | None) -> dict[str, Any]:
        results, traced = self.timed[threads], self.traced[threads]
        walls = [result["wall_s"] for result in results]
        return {
            "variant": self.variant,
            "threads": threads,
            "work": results[0]["work"],
            "wall_s": {
                "median": median(walls),
                "low": min(walls),
                "high": max(walls),
                "runs": walls,
            },
            "traced_wall_s": self.traced_wall_s[threads],
            "cpu_s": median(result["cpu_s"] for result in results),
            "thread_s": dict(traced.thread_s),
            "hold_s": traced.hold_s(worst),
            "losses": results[0]["losses"],
            "voluntary_switches": median(result["voluntary_switches"] for result in results),
            "involuntary_switches": median(result["involuntary_switches"] for result in results),
            "trace": Point(self.variant, threads).trace_name,
        }


def series_of(
    scenario: Scenario, outcome: Outcome, folder: Path
) -> tuple[dict[str, Series], list[str]]:
    """Return the points of every variant, and a line for every run that is missing.

    Parameters
    ----------
    folder
        Where the traces are.
    """
    found = {variant: Series(variant) for variant in scenario.variant_parameters()}
    missing: list[str] = []
    for point in points_of(scenario):
        timed, absent = [], []
        for repeat in range(scenario.repeats):
            run = Run(point, repeat)
            if run in outcome.results:
                timed.append(outcome.results[run])
            else:
                absent.append(f"{point}, run {repeat + 1}: {outcome.failures.get(run, 'not run')}")
        traced = outcome.results.get(Run(point, None))
        if traced is None:
            reason = outcome.failures.get(Run(point, None), "not run")
            absent.append(f"{point}, traced run: {reason}")
        elif timed:
            series = found[point.variant]
            try:
                series.traced[point.threads] = read_traced_run(folder / point.trace_name)
            except TraceError as error:
                absent.append(f"{point}, traced run: {error}")
            else:
                series.timed[point.threads] = timed
                series.traced_wall_s[point.threads] = traced["wall_s"]
        missing.extend(absent)
    return found, missing


def differing_losses(series: Mapping[str, Series]) -> list[str]:
    """Return a line for every variant whose runs did not give the same losses.

    They do the same work whatever the threads, so a difference means that the work was not done.
    """
    lines = []
    for variant, points in series.items():
        seen = {tuple(result["losses"]) for results in points.timed.values() for result in results}
        if len(seen) > 1:
            lines.append(f"{variant}: runs gave {len(seen)} different sets of losses")
    return lines
