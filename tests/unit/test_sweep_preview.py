"""Predicting a scenario before it is run: what the file says, and whose prediction it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contention_lab.sweep.catalogue import find_scenario
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.hand_over import round_trip_ns
from contention_lab.sweep.preview import _designs, is_predicted, predicted, read_prediction
from contention_lab.sweep.scenario import ScenarioError, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

SEVEN = find_scenario("autodiff-all-clients")
TEXT = SEVEN.path.read_text()


def test_the_designs_of_the_seven_clients_are_what_they_declare() -> None:
    designs, items = _designs(SEVEN)

    assert items == 32
    assert [name for name, design in designs.items() if design.spins] == ["global-spinlock"]
    assert [name for name, design in designs.items() if design.queues] == ["async-backend"]
    assert [name for name, design in designs.items() if design.has_thread] == ["channel"]
    assert [name for name, design in designs.items() if design.covers == "tables"] == [
        "narrow-lock"
    ]


def test_what_is_recorded_is_known_even_if_it_is_not_among_the_variants_of_this_run() -> None:
    assert SEVEN.variants is not None
    few = replace(SEVEN, variants=replace(SEVEN.variants, values=("narrow-lock",)))

    assert set(_designs(few)[0]) == {"narrow-lock", "global-spinlock"}


def test_a_workload_without_outlines_cannot_be_predicted(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="leave out"):
        predicted(replace(SEVEN, workload="bank.py"), tmp_path, say=lambda _: None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('source = "global-spinlock"', 'source = "nobody"', "one of variants.values"),
        ("threads = [1, 2]\ncores", "threads = [2]\ncores", "1 and a larger"),
        ("cores = [8,", "cores = [0,", "whole numbers"),
    ],
)
def test_a_wrong_table_is_said_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(TEXT.replace(old, new))

    with pytest.raises(ScenarioError, match=said):
        read_scenario(path)


def test_a_prediction_is_reused_for_the_points_that_it_has(tmp_path: Path) -> None:
    assert not is_predicted(SEVEN, tmp_path)
    points = [
        {"variant": variant, "threads": threads}
        for variant in SEVEN.variant_parameters()
        for threads in SEVEN.threads
    ]
    (tmp_path / "prediction.json").write_text(json.dumps({"schema": 1, "points": points}))

    assert is_predicted(SEVEN, tmp_path)
    assert not is_predicted(replace(SEVEN, threads=(1, 3)), tmp_path)
    (tmp_path / "prediction.json").write_text("{")
    assert read_prediction(tmp_path) is None


def test_handing_over_a_job_takes_some_time() -> None:
    assert round_trip_ns() > 0.0
