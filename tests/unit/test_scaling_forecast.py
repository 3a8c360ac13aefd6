"""What a forecast must do whatever its constants: follow, widen, cover, and ignore units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.scaling.curve_prior import curve_prior
from contention_lab.scaling.experience import EXPERIENCE
from contention_lab.scaling.forecast import MOST_POINTS, forecast

THREADS = np.array([1.0, 2.0, 4.0, 8.0])
AT = np.array([16.0, 32.0, 64.0])
CURVES = {
    "perfect": lambda n: 64.0 / n,
    "half serial": lambda n: 32.0 / n + 32.0,
    "retrograde": lambda n: 32.0 / n + 16.0 + 4.0 * (n - 1.0),
    "saturated": lambda n: np.maximum(64.0 / n, 20.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_interval_holds_a_curve_that_goes_on(name: str) -> None:
    curve = CURVES[name]
    found = forecast(THREADS, curve(THREADS), AT)

    assert np.all(found.low_s < found.median_s)
    assert np.all(found.median_s < found.high_s)
    assert np.all((found.low_s <= curve(AT)) & (curve(AT) <= found.high_s))


def test_the_interval_widens_with_the_distance() -> None:
    for curve in CURVES.values():
        found = forecast(THREADS, curve(THREADS), AT)
        widths = np.log(found.high_s / found.low_s)

        assert np.all(np.diff(widths) > 0.0)


def test_measured_points_are_met() -> None:
    seconds = CURVES["retrograde"](THREADS)
    found = forecast(THREADS, seconds, THREADS)

    assert found.median_s == pytest.approx(seconds, rel=0.06)
    assert np.all((found.low_s <= seconds) & (seconds <= found.high_s))


def test_throughput_is_not_expected_to_rise_where_it_fell() -> None:
    seconds = CURVES["retrograde"](np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    found = forecast(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), seconds, np.array([32.0, 64.0]))

    assert np.all(found.median_s > seconds[-1])


def test_more_points_narrow_the_interval() -> None:
    curve = CURVES["half serial"]
    many = np.arange(1.0, 9.0)
    few = forecast(np.array([1.0, 8.0]), curve(np.array([1.0, 8.0])), AT)
    more = forecast(many, curve(many), AT)

    assert np.all(np.log(more.high_s / more.low_s) < np.log(few.high_s / few.low_s))


def test_one_point_gives_a_wide_answer_and_not_none() -> None:
    found = forecast(np.array([4.0]), np.array([10.0]), np.array([8.0]))

    assert 3.0 < found.low_s[0] < found.median_s[0] < found.high_s[0]
    assert found.high_s[0] / found.low_s[0] > 1.5


@settings(max_examples=8, deadline=None)
@given(unit=st.floats(1e-12, 1e12))
def test_the_unit_of_the_values_does_not_matter(unit: float) -> None:
    seconds = CURVES["retrograde"](THREADS)
    found = forecast(THREADS, seconds * unit, AT)

    assert found.median_s / unit == pytest.approx(forecast(THREADS, seconds, AT).median_s, rel=1e-6)


def test_the_scale_of_the_thread_counts_does_not_matter() -> None:
    seconds = CURVES["half serial"](THREADS)

    assert forecast(20.0 * THREADS, seconds, 20.0 * AT).median_s == pytest.approx(
        forecast(10.0 * THREADS, seconds, 10.0 * AT).median_s, rel=1e-6
    )


def test_the_same_points_give_the_same_forecast() -> None:
    seconds = CURVES["saturated"](THREADS)
    first, second = (forecast(THREADS, seconds, AT) for _ in range(2))

    assert first.high_s.tolist() == second.high_s.tolist()


def test_a_higher_level_holds_a_lower_one() -> None:
    seconds = CURVES["saturated"](THREADS)
    usual, wide = (forecast(THREADS, seconds, AT, level=level) for level in (0.8, 0.95))

    assert np.all(wide.low_s < usual.low_s)
    assert np.all(wide.high_s > usual.high_s)


def test_repeats_count_as_measurements_of_one_count() -> None:
    steady, noisy = np.tile([0.99, 1.01], 4), np.tile([0.8, 1.25], 4)
    threads = np.repeat(THREADS, 2)
    seconds = CURVES["half serial"](threads)
    narrow, wide = (forecast(threads, seconds * noise, AT) for noise in (steady, noisy))

    assert np.all(wide.high_s / wide.low_s > narrow.high_s / narrow.low_s)


def test_a_very_long_table_is_averaged_not_refused() -> None:
    threads = np.linspace(1.0, 8.0, 5 * MOST_POINTS)
    curve = CURVES["half serial"]
    found = forecast(threads, curve(threads), AT)

    assert found.median_s[0] == pytest.approx(curve(AT)[0], rel=0.1)


def test_forecasts_cover_made_tables_at_least_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(30):
        parallel, serial, per_thread = rng.gamma([0.5, 1.0, 0.5])
        counts = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
        seconds = parallel * 16 / counts + serial + per_thread * (counts - 1.0) / 15.0
        seconds *= np.exp(rng.normal(0.0, 0.05, len(counts)))
        found = forecast(counts[:4], seconds[:4], counts[4:])
        inside.append(found.low_s[0] <= seconds[4] <= found.high_s[0])

    assert np.mean(inside) >= 0.8


def test_the_prior_draws_shares_of_one_whole() -> None:
    prior = curve_prior(EXPERIENCE, crowded=False)

    assert prior.shares.sum(axis=1) == pytest.approx(1.0)
    assert np.all(prior.shares >= 0.0)
    broken = np.mean(prior.drop > 0.0)
    families = (EXPERIENCE.smooth, EXPERIENCE.free, EXPERIENCE.steep, EXPERIENCE.broken)
    odds = EXPERIENCE.broken.odds / sum(family.odds for family in families)
    assert broken == pytest.approx(odds, abs=0.01)
