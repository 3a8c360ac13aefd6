"""A sweep that another process makes, as far as its journal tells: what was measured so far.

It only reads. That the sweep still runs is seen by the lock on its journal, which is tried, and let
go at once, only by whoever asks.
"""

from __future__ import annotations

import fcntl
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contention_lab.sweep.catalogue import find_scenario
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.journal import FILE_NAME
from contention_lab.sweep.machine_load import MachineLoad
from contention_lab.sweep.plan import Point, Run
from contention_lab.sweep.runner import Outcome
from contention_lab.sweep.scenario import Scenario, Variants

if TYPE_CHECKING:
    from collections.abc import Mapping

UNOBSERVED: Final = MachineLoad(0.0, None, 0.0, 0.0)
"""In place of a load that only the sweep itself observes."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A sweep with the runs that have ended.

    Attributes
    ----------
    scenario
        With the thread counts and repeats that were met so far.
    outcome
        Without loads, see `UNOBSERVED`.
    """

    scenario: Scenario
    outcome: Outcome

    @property
    def runs(self) -> int:
        """Return how many runs have ended."""
        return len(self.outcome.results)


def is_running(folder: Path) -> bool:
    """Tell whether a sweep is writing into a folder.

    Raises
    ------
    SweepError
        No sweep ever wrote there.
    """
    try:
        with (folder / FILE_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise SweepError(
            f"{folder}: no sweep writes here; name the folder of one that runs, such as "
            "reports/NAME of contention-lab run NAME"
        ) from error
    return False


def under_way(folder: Path) -> UnderWay:
    """Return what a sweep has measured so far.

    Raises
    ------
    SweepError
        The folder has no journal of `contention-lab run`.
    """
    header, *lines = _lines(folder / FILE_NAME)
    identity = header.get("identity") or {}
    if "scenario" not in identity:
        raise SweepError(
            f"{folder}: its journal is of another command than contention-lab run; --watch shows "
            "sweeps of scenarios only"
        )
    try:
        results = {
            Run(Point(line["variant"], line["threads"]), line["repeat"]): line["result"]
            for line in lines
        }
        scenario = _scenario(identity, results)
    except (KeyError, TypeError, ValueError) as error:
        raise SweepError(f"{folder / FILE_NAME}: is no journal of this version") from error
    now = datetime.now(UTC)
    outcome = Outcome(
        results, {}, False, int(header.get("seed") or 0), now, 0.0, UNOBSERVED, UNOBSERVED
    )
    return UnderWay(scenario, outcome)


def _lines(journal: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a journal; the last may be half written."""
    try:
        data = journal.read_bytes()
    except OSError as error:
        raise SweepError(f"{journal}: {error.strerror}") from error
    found: list[dict[str, Any]] = []
    for line in data.split(b"\n")[:-1]:
        try:
            content = json.loads(line)
        except ValueError:
            break
        if not isinstance(content, dict):
            break
        found.append(content)
    return found or [{}]


def _scenario(identity: Mapping[str, Any], results: Mapping[Run, Any]) -> Scenario:
    """Return the scenario of a journal: what ships under its name, with what was met so far."""
    name, by_variant = str(identity["scenario"]), dict(identity["parameters"])
    variants = _variants(name, by_variant)
    first = dict(next(iter(by_variant.values())))
    if variants is not None:
        del first[variants.key]
    timed = [run.repeat for run in results if run.repeat is not None]
    return replace(
        _shipped(name, str(identity["workload"])),
        parameters=first,
        variants=variants,
        threads=tuple(sorted({run.point.threads for run in results})),
        repeats=max(timed, default=0) + 1,
        predict=None,
    )


def _variants(name: str, by_variant: Mapping[str, Mapping[str, Any]]) -> Variants | None:
    if list(by_variant) == [name]:
        return None
    shared = set.intersection(*(set(parameters) for parameters in by_variant.values()))
    for key in sorted(shared):
        values = tuple(parameters[key] for parameters in by_variant.values())
        if tuple(map(str, values)) == tuple(by_variant):
            return Variants(key, values)
    raise ValueError("variants that differ in no parameter")


def _shipped(name: str, workload: str) -> Scenario:
    """Return the shipped scenario of that name, or one that says no more than the journal."""
    try:
        scenario = find_scenario(name)
    except SweepError:
        scenario = None
    if scenario is not None and scenario.workload == workload:
        return scenario
    return Scenario(
        path=Path(name),
        name=name,
        title=name,
        story="",
        workload=workload,
        unit="runs",
        parameters={},
        quick={},
        threads=(),
        repeats=1,
        variants=None,
        expectations={},
    )
