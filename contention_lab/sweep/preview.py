"""The prediction of a scenario's variants, made before any but one of them has been run.

One variant is recorded, at few threads; the others are known by what they declare (`outlines`).
What is predicted is written to `prediction.json` before the sweep begins, and read again when it
has ended, so that nothing measured can have had a part in it.
"""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from contention_lab.simulate.calibration import calibration_here
from contention_lab.simulate.design import (
    Call,
    Design,
    HandOver,
    Outlook,
    Runs,
    Sample,
    SampleError,
    kind_of_lock,
    remainder_of,
    sample_of,
)
from contention_lab.sweep.child import RunFailed, run_child
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.hand_over import round_trip_ns
from contention_lab.sweep.host import usable_cores, usable_cpus
from contention_lab.sweep.workload import workload_source
from contention_lab.trace import TraceError, load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.design import Remainder
    from contention_lab.sweep.scenario import Scenario

FILE_NAME: Final = "prediction.json"
SCHEMA: Final = 1
OUTLINES: Final[Mapping[str, str]] = {"autodiff": "contention_lab.autodiff.outline"}
"""Module that says what the variants of a workload do and share, by the workload's name."""
LEAST_RECORDINGS: Final = 3
"""Of each thread count: one may have been disturbed."""
ITEMS_PER_THREAD: Final = 2
"""Items of work for each thread of a larger machine, which has as many threads as cores."""
FEW_WORLDS: Final = 2
"""Possible worlds of a larger machine, of which nobody can check the interval here."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that a prediction is made from, and how long its batch took."""

    threads: int
    wall_s: float
    cpu_s: float
    trace: str
    sample: Sample


def predicted(scenario: Scenario, folder: Path, *, say: Callable[[str], None]) -> None:
    """Record one variant, predict all of them, and write `prediction.json` into `folder`.

    Parameters
    ----------
    scenario
        One with a `[predict]` table.
    folder
        Where traces and result go; made where missing.
    say
        Told what is being done.

    Raises
    ------
    SweepError
        A recording failed, or does not show what the variant declares.
    """
    rule = scenario.predict
    assert rule is not None
    (folder / "traces").mkdir(parents=True, exist_ok=True)
    designs, items = _designs(scenario)
    say(f"recording {rule.source}, the only variant that is run before the prediction")
    recorded = _recordings(scenario, folder, len(designs[rule.source].calls))
    calibration, taken = _calibration()
    trip_ns = round_trip_ns()
    outlook = Outlook(
        [one.sample for one in recorded if one.threads == 1],
        [one.sample for one in recorded if one.threads > 1],
        calibration,
        HandOver(trip_ns / 2, trip_ns / 2),
    )
    say("predicting all variants")
    cores = usable_cores()
    remainder = _remainder(outlook, designs[rule.source], recorded, items, cores)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    content = {
        "schema": SCHEMA,
        "made": made,
        "source": rule.source,
        "remainder": asdict(remainder),
        "cores": cores,
        "recorded": [
            {
                "threads": one.threads,
                "wall_s": one.wall_s,
                "cpu_s": one.cpu_s,
                "trace": one.trace,
                "work_s": one.sample.items * one.sample.item_ns / 1e9,
                "gil_share": one.sample.gil,
            }
            for one in recorded
        ],
        "calibration": {
            "measured_at": calibration.measured_at or None,
            "taken": taken,
            "warnings": [*calibration.warnings],
            "round_trip_us": trip_ns / 1e3,
        },
        "points": _points(scenario, designs, items, replace(outlook, remainder=remainder), cores),
        "machines": _machines(designs, outlook, rule.cores, rule.source),
    }
    (folder / FILE_NAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_prediction(folder: Path) -> dict[str, Any] | None:
    """Return what was predicted before the sweep in `folder`; None if nothing was."""
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def is_predicted(scenario: Scenario, folder: Path) -> bool:
    """Tell whether a folder has a prediction of this scenario's variants and thread counts."""
    return is_of(read_prediction(folder), scenario)


def is_of(found: Mapping[str, Any] | None, scenario: Scenario) -> bool:
    """Tell whether a prediction is one of this scenario's variants and thread counts."""
    if found is None:
        return False
    there = {(point["variant"], point["threads"]) for point in found["points"]}
    return all(
        (variant, threads) in there
        for variant in scenario.variant_parameters()
        for threads in scenario.threads
    )


def _designs(scenario: Scenario) -> tuple[dict[str, Design], int]:
    """Return the design of each variant, and how many items of work the batch has."""
    module = OUTLINES.get(scenario.workload)
    if module is None:
        raise SweepError(
            f"{scenario.path}: workload {scenario.workload!r} does not say what its variants "
            "share; leave out [predict]"
        )
    outline = importlib.import_module(module).outline
    rule = scenario.predict
    assert rule is not None
    parameters = scenario.variant_parameters()
    if scenario.variants is not None and rule.source not in parameters:
        shared = {**scenario.parameters, scenario.variants.key: rule.source}
        parameters = {**parameters, rule.source: shared}
    outlines = {name: outline(given) for name, given in parameters.items()}
    designs = {name: _design(name, found) for name, found in outlines.items()}
    return designs, outlines[rule.source].trainings


def _design(name: str, found: Any) -> Design:
    sharing = found.sharing
    return Design(
        name,
        kind_of_lock(found.lock),
        sharing.covers,
        sharing.apart,
        sharing.has_thread,
        sharing.queues,
        [
            Call(call.is_backward, call.kernels_before, call.kernels_within, call.nodes)
            for call in found.calls
        ],
    )


def _recordings(scenario: Scenario, folder: Path, calls: int) -> list[Recorded]:
    rule = scenario.predict
    assert rule is not None
    assert scenario.variants is not None
    parameters = {**scenario.parameters, scenario.variants.key: rule.source}
    source = workload_source(scenario)
    found = []
    for number in range(max(LEAST_RECORDINGS, scenario.repeats)):
        for threads in rule.threads:
            trace = f"traces/prediction-{threads}-{number + 1}.clt"
            spec = {
                "workload": source,
                "parameters": parameters,
                "threads": threads,
                "trace": str(folder / trace),
                "level": "trace",
            }
            try:
                result = run_child(spec, layer=True)
                sample = sample_of(load(folder / trace), calls)
            except (RunFailed, TraceError, SampleError) as error:
                raise SweepError(
                    f"{rule.source} at {threads} threads, recorded for the prediction: {error}"
                ) from error
            found.append(Recorded(threads, result["wall_s"], result["cpu_s"], trace, sample))
    return found


def _calibration() -> tuple[Calibration, bool]:
    """Return this host's stored costs, or take them now; and whether they were taken now."""
    stored = calibration_here(usable_cores())
    if not stored.is_default:
        return stored, False
    from contention_lab.simulate.calibration import CalibrationError
    from contention_lab.simulate.host_probe import measured_calibration
    from contention_lab.sweep.machine_load import load_warnings, observed_load

    try:
        warnings = load_warnings(observed_load())
        return measured_calibration(usable_cpus(), warnings=warnings), True
    except (CalibrationError, OSError):
        return stored, False


def _remainder(
    outlook: Outlook, design: Design, recorded: Sequence[Recorded], items: int, cores: int
) -> Remainder:
    """Return what the recorded runs took beside what is simulated of them."""
    several = min(one.threads for one in recorded if one.threads > 1)

    def runs(threads: int) -> Runs:
        found = outlook.prospect(design, items, threads, cores)
        walls = [one.wall_s for one in recorded if one.threads == threads]
        return Runs(walls, found.time_ns / 1e9, found.cores_at_work)

    return remainder_of(runs(1), runs(several))


def _points(
    scenario: Scenario, designs: Mapping[str, Design], items: int, outlook: Outlook, cores: int
) -> list[dict[str, Any]]:
    points = []
    for variant in scenario.variant_parameters():
        for threads in scenario.threads:
            found = outlook.prospect(designs[variant], items, threads, cores)
            points.append(
                {
                    "variant": variant,
                    "threads": threads,
                    "time_s": found.time_ns / 1e9,
                    "low_s": found.low_ns / 1e9,
                    "high_s": found.high_ns / 1e9,
                    "collapses": designs[variant].spins and threads > cores,
                }
            )
    return points


def _machines(
    designs: Mapping[str, Design], outlook: Outlook, cores: Sequence[int], source: str
) -> list[dict[str, Any]]:
    """Return how many times as fast each would be on other machines, with a thread per core."""
    alone = outlook.prospect(designs[source], 8, 1, 1, draws=FEW_WORLDS).time_ns / 8
    found = []
    for gil in (True, False):
        for count in cores:
            items = ITEMS_PER_THREAD * count
            for name, design in designs.items():
                time = outlook.prospect(design, items, count, count, gil=gil, draws=FEW_WORLDS)
                times = items * alone / time.time_ns
                entry = {"variant": name, "cores": count, "gil": gil, "times": times}
                found.append(entry if math.isfinite(times) else {**entry, "times": None})
    return found
