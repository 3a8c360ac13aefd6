"""The Universal Scalability Law against figures published by R's package `usl`, and itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.scaling import ScalingError, TooFewPointsError, fit_scaling
from contention_lab.scaling.law import USL
from contention_lab.scaling.least_squares import fit_law
from contention_lab.scaling.usl import throughput_standard_errors, usl_coefficients

RAYTRACER = np.array(
    [
        (1, 20),
        (4, 78),
        (8, 130),
        (12, 170),
        (16, 190),
        (20, 200),
        (24, 210),
        (28, 230),
        (32, 260),
        (48, 280),
        (64, 310),
    ],
    dtype=np.float64,
)
SPECSDM91 = np.array(
    [
        (1, 64.9),
        (18, 995.9),
        (36, 1652.4),
        (72, 1853.2),
        (108, 1828.9),
        (144, 1775),
        (216, 1702.2),
    ],
    dtype=np.float64,
)
SYNTHETIC = np.array(
    [(1, 1), (2, 1.8868), (4, 3.0769), (6, 3.5294), (8, 3.5398), (10, 3.3557)], dtype=np.float64
)
BURN_THREADS = (1, 2, 4, 8, 16, 32)
BURN_SECONDS = (492, 526, 640, 916, 1758, 3287)


def published(figure: float) -> object:
    """Return what equals a figure printed with five significant digits."""
    return pytest.approx(figure, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(
    ("points", "alpha", "beta", "gamma"),
    [
        (RAYTRACER, 0.057771, 0.0, 21.848843),
        (SPECSDM91, 0.0277285, 0.0001044, 89.9952),
    ],
)
def test_coefficients_are_those_of_r(
    points: np.ndarray, alpha: float, beta: float, gamma: float
) -> None:
    fit = fit_law(USL, points[:, 0], 1.0 / points[:, 1], residuals="throughput")
    found = usl_coefficients(fit)

    assert found.alpha == pytest.approx(alpha, abs=5e-7)
    assert found.beta == pytest.approx(beta, abs=5e-8)
    assert found.gamma == published(gamma)


@pytest.mark.parametrize(
    ("points", "alpha", "beta", "gamma", "residual"),
    [
        (RAYTRACER, 0.013293, 0.000118, 2.196165, 9.34),
        (SPECSDM91, 0.0091217, 0.0000199, 14.2135, 82.85),
    ],
)
def test_standard_errors_are_those_of_r(
    points: np.ndarray, alpha: float, beta: float, gamma: float, residual: float
) -> None:
    fit = fit_law(USL, points[:, 0], 1.0 / points[:, 1], residuals="throughput")
    errors = throughput_standard_errors(fit, points[:, 0])
    misses = 1.0 / fit.seconds(points[:, 0]) - points[:, 1]

    assert errors.alpha == pytest.approx(alpha, abs=5e-7)
    assert errors.beta == pytest.approx(beta, abs=1e-7)
    assert errors.gamma == published(gamma)
    assert np.sqrt(misses @ misses / (len(points) - 3)) == pytest.approx(residual, abs=5e-3)


def test_peak_and_limit_are_those_of_r() -> None:
    for points, peak, limit in ((SPECSDM91, 96.51956, 3245.589), (RAYTRACER, None, 378.2)):
        fit = fit_law(USL, points[:, 0], 1.0 / points[:, 1], residuals="throughput")
        found = usl_coefficients(fit)

        assert found.peak_threads == (None if peak is None else published(peak))
        assert found.limit == pytest.approx(limit, rel=1e-4)


def test_synthetic_coefficients_come_back() -> None:
    fit = fit_scaling(SYNTHETIC[:, 0], 1.0 / SYNTHETIC[:, 1])

    assert fit.alpha == pytest.approx(0.02, abs=2e-5)
    assert fit.beta == pytest.approx(0.02, abs=2e-5)
    assert fit.gamma == pytest.approx(1.0, abs=2e-5)
    assert fit.best_threads == 7


@pytest.mark.filterwarnings("error")
def test_the_seed_case_gives_its_known_answer() -> None:
    fit = fit_scaling(BURN_THREADS, BURN_SECONDS)

    assert fit.alpha == pytest.approx(0.63, abs=0.005)
    low, high = fit.intervals["alpha"]
    assert low == pytest.approx(0.41, abs=0.015)
    assert high == pytest.approx(0.86, abs=0.015)
    assert fit.per_thread_s == pytest.approx(93.0, abs=0.5)
    assert fit.standard_errors["per_thread_s"] == pytest.approx(5.0, abs=0.5)
    assert fit.parallel_s == pytest.approx(187.0, abs=0.5)
    assert fit.serial_s == pytest.approx(315.0, abs=0.5)
    assert fit.mean_error == pytest.approx(0.032, abs=0.0005)
    assert fit.amdahl_mean_error >= 0.39
    assert fit.best_threads == 1
    share = fit.per_thread_s * 31 / fit.predict([32])[0]
    assert share == pytest.approx(0.90, abs=0.005)


def test_the_same_points_give_the_same_intervals() -> None:
    first = fit_scaling(BURN_THREADS, BURN_SECONDS)
    second = fit_scaling(BURN_THREADS[::-1], BURN_SECONDS[::-1])

    assert first.to_json() == second.to_json()


def test_the_unit_of_time_changes_no_share() -> None:
    seconds = fit_scaling(BURN_THREADS, BURN_SECONDS)
    microseconds = fit_scaling(BURN_THREADS, [value * 1e-6 for value in BURN_SECONDS])

    assert microseconds.alpha == pytest.approx(seconds.alpha, rel=1e-5)
    assert microseconds.per_thread_s == pytest.approx(seconds.per_thread_s * 1e-6, rel=1e-5)
    assert microseconds.intervals["alpha"] == pytest.approx(seconds.intervals["alpha"], rel=1e-3)


@settings(deadline=None)
@given(
    alpha=st.floats(0.0, 0.9),
    beta=st.one_of(st.just(0.0), st.floats(1e-4, 0.3)),
    gamma=st.floats(1e-3, 1e6),
)
def test_exact_points_give_their_law_back(alpha: float, beta: float, gamma: float) -> None:
    threads = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0])
    rate = gamma * threads / (1 + alpha * (threads - 1) + beta * threads * (threads - 1))
    fit = fit_law(USL, threads, 1.0 / rate)
    found = usl_coefficients(fit)

    assert found.alpha == pytest.approx(alpha, abs=1e-4)
    assert found.beta == pytest.approx(beta, abs=1e-4)
    assert found.gamma == pytest.approx(gamma, rel=1e-4)


@settings(deadline=None, max_examples=40)
@given(noise=st.lists(st.floats(-0.5, 0.5), min_size=6, max_size=6))
def test_any_noise_leaves_shares_within_their_bounds(noise: list[float]) -> None:
    seconds = np.array(BURN_SECONDS) * np.exp(noise)
    fit = fit_scaling(BURN_THREADS, seconds, draws=64)

    assert 0.0 <= fit.alpha <= 1.0
    assert fit.beta >= 0.0
    for low, high in fit.intervals.values():
        assert np.isfinite(low)
        assert np.isfinite(high)
        assert low <= high


def test_perfect_scaling_has_no_best_count_and_no_ceiling() -> None:
    threads = np.array([1.0, 2.0, 4.0, 8.0])
    fit = fit_scaling(threads, 8.0 / threads)

    assert fit.alpha == 0.0
    assert fit.beta == 0.0
    assert fit.best_threads is None
    assert fit.ceiling is None
    assert None not in (fit.to_json()["alpha"], fit.to_json()["mean_error"])


def test_better_than_linear_is_clamped_and_said() -> None:
    threads = np.array([1.0, 2.0, 4.0, 8.0])
    fit = fit_scaling(threads, 8.0 / threads**1.3)

    assert fit.alpha == 0.0
    assert any("Better than linear" in note for note in fit.notes)


def test_a_cliff_is_said() -> None:
    fit = fit_scaling([1, 2, 3, 4, 8, 16], [1.0, 0.8, 102.0, 64.0, 71.0, 1800.0])

    assert any("cliff between 2 and 3 threads" in note for note in fit.notes)


def test_a_plateau_is_said() -> None:
    fit = fit_scaling([1, 2, 4, 8, 16], [8.0, 4.1, 2.1, 2.1, 2.15])

    assert any("Flat from 4 threads on" in note for note in fit.notes)


def test_a_smooth_law_is_not_called_irregular() -> None:
    fit = fit_scaling(BURN_THREADS, BURN_SECONDS)

    assert not any("cliff" in note or "Flat" in note or "linear" in note for note in fit.notes)


def test_three_thread_counts_are_refused_with_the_reason() -> None:
    with pytest.raises(TooFewPointsError, match="3 thread counts: a law with three coefficients"):
        fit_scaling([1, 1, 2, 4], [4.0, 4.1, 2.0, 1.0])


@pytest.mark.parametrize(
    ("threads", "seconds", "complaint"),
    [
        ([1, 2, 4, 8], [1, 2, 3], "4 thread counts and 3 measurements"),
        ([1, 2, 0, 8], [1, 2, 3, 4], "point 3 \\(0 threads, 3\\)"),
        ([1, 2, 4, 8], [1, float("nan"), 3, 4], "point 2 \\(2 threads, nan\\)"),
        ([1, 2, 4, 8], [1, 2, 3, -4], "point 4 \\(8 threads, -4\\)"),
    ],
)
def test_unusable_numbers_are_named(
    threads: list[float], seconds: list[float], complaint: str
) -> None:
    with pytest.raises(ScalingError, match=complaint):
        fit_scaling(threads, seconds)
