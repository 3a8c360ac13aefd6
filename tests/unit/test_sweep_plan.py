"""The order in which a sweep makes its runs."""

from __future__ import annotations

from dataclasses import replace

from test_sweep_adjustment import SCENARIO

from contention_lab.sweep.plan import Point, planned_runs, points_of
from contention_lab.sweep.scenario import Variants

TWO = replace(
    SCENARIO, threads=(1, 2, 4, 8), repeats=3, variants=Variants("client", ("narrow", "global"))
)


def test_every_point_is_timed_as_often_as_asked_and_traced_once() -> None:
    runs = planned_runs(points_of(TWO), TWO.repeats, seed=1)

    assert len(runs) == len(set(runs)) == 8 * (3 + 1)
    for point in points_of(TWO):
        mine = [run for run in runs if run.point == point]
        assert sum(run.traced for run in mine) == 1
        assert sorted(run.repeat for run in mine if run.repeat is not None) == [0, 1, 2]


def test_every_round_visits_all_points_before_the_next_begins() -> None:
    timed = [run for run in planned_runs(points_of(TWO), TWO.repeats, seed=2) if not run.traced]

    for repeat in range(3):
        visited = timed[8 * repeat : 8 * (repeat + 1)]
        assert {run.repeat for run in visited} == {repeat}
        assert {run.point for run in visited} == set(points_of(TWO))


def test_the_traced_run_of_a_point_stands_beside_its_first_timed_one() -> None:
    runs = planned_runs(points_of(TWO), TWO.repeats, seed=3)

    for first, second in zip(runs[:16:2], runs[1:16:2], strict=True):
        assert first.point == second.point
        assert {first.repeat, second.repeat} == {0, None}


def test_the_order_is_mixed_and_follows_from_the_seed() -> None:
    orders = {planned_runs(points_of(TWO), TWO.repeats, seed) for seed in range(20)}

    assert len(orders) == 20
    assert planned_runs(points_of(TWO), TWO.repeats, 7) == planned_runs(
        points_of(TWO), TWO.repeats, 7
    )


def test_traces_of_oddly_named_variants_do_not_collide() -> None:
    names = {Point(variant, 1).trace_name for variant in ("a/b", "a_b", "../a", "a b")}

    assert len(names) == 4
    assert all(name.count("/") == 1 and name.startswith("traces/") for name in names)
