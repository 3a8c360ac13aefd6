"""The harness that judges forecasts: it hides what it says it hides, and counts what it says."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contention_lab.scaling.measurements import measured

if TYPE_CHECKING:
    from types import ModuleType

PATH = Path(__file__).parents[1] / "benchmarks" / "scaling_tables.py"
COUNTS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])


@pytest.fixture(scope="module")
def harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling_tables", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling_tables"] = module
    spec.loader.exec_module(module)
    return module


def law(serial: float, per_thread: float) -> np.ndarray:
    return 10.0 / COUNTS + serial + per_thread * (COUNTS - 1.0)


def table(name: str, seconds: np.ndarray) -> dict[str, Any]:
    points = np.column_stack([COUNTS, seconds]).tolist()
    return {"id": name, "kind": "time", "work": "fixed", "points": points}


def test_a_law_that_holds_is_predicted_by_itself(
    harness: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tables.json"
    file.write_text(json.dumps([table("a", law(2.0, 0.1)), table("b", law(1.0, 0.5))]))

    assert harness.main([str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    usl = found["exact first half"]["USL"]
    assert usl["tables"] == 2
    assert usl["median_error"] < 1e-4
    assert usl["coverage"] is None
    forecast = found["exact first half"]["forecast"]
    assert 0.0 < forecast["median_error"] < 0.5
    assert 0.0 <= forecast["coverage"] <= 1.0


def test_what_is_held_out_does_not_reach_the_model(harness: ModuleType) -> None:
    seen = []

    def spy(threads: np.ndarray, seconds: np.ndarray, at: np.ndarray) -> Any:
        seen.append((threads.tolist(), seconds.tolist(), at.tolist()))
        return harness.by_forecast(threads, seconds, at)

    honest = law(2.0, 0.1)
    for tail in (1.0, 100.0):
        seconds = np.where(COUNTS > 4.0, tail * honest, honest)
        one = measured(COUNTS, seconds, kind="time", work="fixed")
        list(harness.outcomes([("x", one)], spy, harness.at_least_three, 4))

    assert seen[0] == seen[1]
    assert seen[0][0] == [1.0, 2.0, 4.0]
    assert seen[0][2] == [8.0, 16.0, 32.0]


@pytest.mark.parametrize(("points", "at_least_three", "exact"), [(4, 3, 2), (5, 3, 3), (9, 5, 5)])
def test_the_first_half_is_what_its_name_says(
    harness: ModuleType, points: int, at_least_three: int, exact: int
) -> None:
    assert harness.at_least_three(points) == at_least_three
    assert harness.exact_half(points) == exact


def test_a_table_counts_once_however_long_it_is(harness: ModuleType) -> None:
    results = [
        harness.Outcome("long", np.full(90, 0.5), np.ones(90)),
        harness.Outcome("short", np.array([0.1]), np.zeros(1)),
        harness.Outcome("other", np.array([0.2, 0.4]), np.zeros(2)),
    ]

    found = harness.summary(results)

    assert found["median_error"] == pytest.approx(0.3)
    assert found["median_error_of_points"] == pytest.approx(0.5)
    assert found["coverage"] == pytest.approx(90 / 93)
    assert found["coverage_by_table"] == pytest.approx(1 / 3)


def outcome(harness: ModuleType, table: str, error: float) -> Any:
    return harness.Outcome(table, np.array([error]), np.array([1.0]))


def test_a_choice_is_judged_on_the_table_that_had_no_say(harness: ModuleType) -> None:
    # "lucky" is good on one table alone: without that table nobody would choose it.
    errors = {harness.IN_USE: [0.2, 0.2, 0.2, 0.2], "lucky": [0.0, 0.5, 0.5, 0.5]}
    found = harness.choices(
        {
            name: [outcome(harness, str(number), error) for number, error in enumerate(row)]
            for name, row in errors.items()
        }
    )

    assert found["chosen"] == {harness.IN_USE: 4}
    assert found["left_out"]["median_error"] == pytest.approx(0.2)
    assert found["candidates"]["lucky"]["median_error"] == pytest.approx(0.5)


def test_what_hangs_on_one_table_comes_apart_when_it_is_left_out(harness: ModuleType) -> None:
    errors = {harness.IN_USE: [0.0, 0.3, 0.3], "other": [0.9, 0.1, 0.3]}
    found = harness.choices(
        {
            name: [outcome(harness, str(number), error) for number, error in enumerate(row)]
            for name, row in errors.items()
        }
    )

    # Without the first table the other one is chosen, which then fails on that table.
    assert found["chosen"] == {"other": 1, harness.IN_USE: 2}
    assert found["left_out"]["median_error"] == pytest.approx(0.3)
    assert found["left_out"]["p90_error"] > 0.7


def test_each_candidate_differs_from_what_is_in_use_by_one_step(harness: ModuleType) -> None:
    found = harness.candidates()

    assert len(found) == len(set(found.values())) == 11
