"""A prediction against measurements made up for it."""

from __future__ import annotations

from typing import Any

import pytest

from contention_lab.sweep.proof import proof


def predicted(*points: tuple[str, int, float, bool]) -> dict[str, Any]:
    return {
        "points": [
            {
                "variant": variant,
                "threads": threads,
                "time_s": time_s,
                "low_s": time_s / 1.2,
                "high_s": time_s * 1.2,
                "collapses": collapses,
            }
            for variant, threads, time_s, collapses in points
        ]
    }


def measured(variant: str, threads: int, median: float, spread: float = 0.0) -> dict[str, Any]:
    low, high, runs = median - spread, median + spread, [median, median]
    wall = {"median": median, "low": low, "high": high, "runs": runs}
    return {"variant": variant, "threads": threads, "wall_s": wall}


def test_an_error_is_positive_where_too_long_a_time_was_predicted() -> None:
    found = proof(predicted(("a", 8, 1.1, False)), [measured("a", 8, 1.0)])

    assert found["points"][0]["error"] == pytest.approx(0.1)
    assert found["median_error"] == pytest.approx(0.1)
    assert found["coverage"] == 1.0


def test_collapsing_points_are_counted_as_factors_and_not_as_errors() -> None:
    points = predicted(("spin", 8, 1.0, True), ("park", 8, 1.0, False))

    found = proof(points, [measured("spin", 8, 3.0), measured("park", 8, 1.0)])

    assert found["median_error"] == 0.0
    assert found["collapsing_factor"] == pytest.approx(3.0)
    assert found["coverage"] == 0.5


def test_the_order_is_judged_by_pairs_that_the_runs_tell_apart() -> None:
    points = predicted(("a", 8, 1.0, False), ("b", 8, 2.0, False), ("c", 8, 3.0, False))

    (order,) = proof(
        points, [measured("a", 8, 1.5), measured("b", 8, 1.0), measured("c", 8, 1.6, 0.2)]
    )["orders"]

    assert order["predicted"] == ["a", "b", "c"]
    assert order["measured"] == ["b", "a", "c"]
    assert (order["pairs"], order["told_apart"]) == (3, 2)
    assert order["wrong"] == [["a", "b"]]


def test_points_that_were_not_measured_are_left_out() -> None:
    found = proof(predicted(("a", 8, 1.0, False), ("a", 16, 1.0, False)), [measured("a", 8, 1.0)])

    assert [point["threads"] for point in found["points"]] == [8]
    assert [order["threads"] for order in found["orders"]] == [8]


def test_single_runs_have_an_order_only_where_they_differ_much() -> None:
    points = predicted(("a", 8, 1.0, False), ("b", 8, 2.0, False))
    runs = [measured("a", 8, 1.1), measured("b", 8, 1.0)]
    assert proof(points, runs)["orders"][0]["told_apart"] == 1

    for run in runs:
        run["wall_s"]["runs"] = [run["wall_s"]["median"]]
    assert proof(points, runs)["orders"][0]["told_apart"] == 0
