"""The section that shows a prediction beside what was then measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
from report_case import CLIENTS, sweep_result

from contention_lab.report import sweep_page
from contention_lab.report.prediction_section import prediction_section, who_was_right
from contention_lab.sweep.proof import proof


def with_prediction(off: float = 1.0) -> dict[str, Any]:
    """A sweep of all clients, of which everything was predicted `off` times as long."""
    result = sweep_result(tuple(CLIENTS))
    points = [
        {
            "variant": point["variant"],
            "threads": point["threads"],
            "time_s": point["wall_s"]["median"] * off,
            "low_s": point["wall_s"]["median"] * off / 1.1,
            "high_s": point["wall_s"]["median"] * off * 1.1,
            "collapses": point["variant"] == "global-spinlock" and point["threads"] > 2,
        }
        for point in result["points"]
    ]
    predicted = {
        "schema": 1,
        "source": "global-spinlock",
        "recorded": [{"threads": threads} for threads in (1, 2, 1, 2)],
        "calibration": {
            "measured_at": "2026-11-30T06:40:00+00:00",
            "taken": True,
            "warnings": [],
            "round_trip_us": 44.0,
        },
        "points": points,
        "machines": [
            {"variant": variant, "cores": cores, "gil": gil, "times": 1.5}
            for variant in CLIENTS
            for cores in (8, 128)
            for gil in (True, False)
        ],
    }
    return {**result, "prediction": {**predicted, "proof": proof(predicted, result["points"])}}


def test_a_page_without_a_prediction_has_no_such_section() -> None:
    result = sweep_result(tuple(CLIENTS))

    assert prediction_section(result) is None
    assert 'id="prediction"' not in sweep_page(result, {})


def test_the_page_shows_every_point_predicted_and_measured() -> None:
    page = sweep_page(with_prediction(), {})

    assert "Predicted first, then measured" in page
    assert page.count("<td>yes</td></tr>") >= len(CLIENTS) * 6
    assert "Predicted and measured batch time against threads" in page
    assert "a prediction, measured by nobody" in page


def test_what_the_recorded_runs_took_beside_is_said_where_it_is_known() -> None:
    result = with_prediction()
    section = prediction_section(result)
    assert section is not None
    assert section.remainder == ""

    result["prediction"]["remainder"] = {
        "alone": 0.0,
        "together": math.log(1.5),
        "cores_alone": 1.0,
        "cores_together": 1.93,
        "spread": 0.05,
    }

    page = sweep_page(result, {})
    assert "took 1.00 times as long as simulated with one thread and 1.50 times with more" in page
    assert "1.0 and 1.9 cores at work" in page


def test_what_was_to_be_reached_is_said_with_what_was_found() -> None:
    good, bad = (prediction_section(with_prediction(off)) for off in (1.0, 2.5))

    assert good is not None
    assert bad is not None
    assert [goal.reached for goal in good.goals] == [True] * 5
    # All are as much too long: the order is right and nothing else is.
    assert [goal.reached for goal in bad.goals] == [True, True, False, False, False]
    assert "150.0%" in [goal.found for goal in bad.goals]


def test_the_order_names_what_is_the_wrong_way_round() -> None:
    result = with_prediction()
    points = result["prediction"]["points"]
    for point in points:
        if point["threads"] == 8 and point["variant"] == "global-spinlock":
            point["time_s"] = 0.01
    result["prediction"]["proof"] = proof(result["prediction"], result["points"])

    section = prediction_section(result)

    assert section is not None
    assert not section.goals[0].reached
    assert "global-spinlock and" in section.goals[0].found


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ("narrow-lock", "Right: nothing measured is better"),
        ("channel", "It only ends the spinning"),
        ("graph-mutex", "Right: nothing measured is better"),
        ("async-backend", "Right in part"),
    ],
)
def test_each_in_the_thread_is_judged_by_what_was_measured(client: str, said: str) -> None:
    (line,) = (line for line in who_was_right(with_prediction()) if f"`{client}`" in line)

    assert said in line


def test_nobody_is_judged_where_the_shipped_client_was_not_measured() -> None:
    assert who_was_right(sweep_result(("narrow-lock",))) == []
