"""What two or three points allow: ranges that must hold the truth, and no law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.scaling.bounds import NOISE, bounds_of

COEFFICIENT = st.one_of(st.just(0.0), st.floats(0.01, 100.0))


@settings(deadline=None, max_examples=40)
@given(
    parallel=st.floats(0.1, 100.0),
    serial=COEFFICIENT,
    per_thread=COEFFICIENT,
    unit=st.sampled_from([1e-9, 1.0, 1e6]),
    noise=st.lists(st.floats(-0.04, 0.04), min_size=3, max_size=3),
)
def test_the_ranges_hold_the_coefficients_that_made_the_points(
    parallel: float, serial: float, per_thread: float, unit: float, noise: list[float]
) -> None:
    threads = np.array([1.0, 2.0, 4.0])
    exact = unit * (parallel / threads + serial + per_thread * (threads - 1.0))

    bounds = bounds_of(threads, exact * (1.0 + np.array(noise)), "three points")

    for name, truth in (
        ("parallel_s", parallel),
        ("serial_s", serial),
        ("per_thread_s", per_thread),
    ):
        low, high = bounds.ranges[name]
        slack = 1e-5 * unit * (parallel + serial + per_thread)
        assert low <= truth * unit * 1.05 + slack
        assert high is not None
        assert high >= truth * unit * 0.95 - slack


def test_one_point_sets_no_limit_to_the_cost_of_a_thread() -> None:
    bounds = bounds_of(np.array([1.0]), np.array([10.0]), "one point")

    assert bounds.ranges["per_thread_s"] == (0.0, None)
    assert bounds.ranges["serial_s"] == (0.0, pytest.approx(10.0 * (1.0 + NOISE)))


def test_points_that_contradict_the_form_widen_the_noise() -> None:
    bounds = bounds_of(np.array([1.0, 2.0, 4.0]), np.array([8.0, 2.0, 4.0]), "three points")

    assert bounds.noise > 0.3


def test_the_fewest_thread_seconds_bound_any_batch() -> None:
    bounds = bounds_of(np.array([1.0, 2.0]), np.array([10.0, 5.5]), "two points")

    assert bounds.fewest_thread_seconds == 10.0
    assert bounds.to_json()["reason"] == "two points"
