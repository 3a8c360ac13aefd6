"""What a measured value means, and the refusal to guess it."""

from __future__ import annotations

import numpy as np
import pytest

from contention_lab.scaling.errors import AmbiguousWorkError, ScalingError
from contention_lab.scaling.measurements import Kind, Work, measured

BURN = ([1, 2, 4, 8, 16, 32], [492, 526, 640, 916, 1758, 3287])


@pytest.mark.parametrize(
    ("kind", "work", "seconds"),
    [
        ("time", "fixed", [8.0, 6.0]),
        ("time", "per-thread", [8.0, 3.0]),
        ("throughput", "fixed", [1 / 8, 1 / 6]),
        ("throughput", "per-thread", [1 / 8, 1 / 12]),
    ],
)
def test_every_kind_of_value_becomes_the_time_of_fixed_work(
    kind: Kind, work: Work, seconds: list[float]
) -> None:
    table = measured([1, 2], [8, 6], kind=kind, work=work)

    assert table.seconds == pytest.approx(seconds)
    assert table.in_own_unit(table.threads, table.seconds) == pytest.approx([8, 6])


def test_times_that_rise_are_not_guessed() -> None:
    with pytest.raises(AmbiguousWorkError, match=r"--work fixed.*--work per-thread"):
        measured(*BURN, kind="time", work=None)


def test_rates_that_fall_are_not_guessed() -> None:
    with pytest.raises(AmbiguousWorkError, match=r"all threads together.*of one thread"):
        measured([1, 2, 4], [10, 6, 4], kind="throughput", work=None)


def test_times_that_fall_with_the_threads_are_a_fixed_batch() -> None:
    table = measured([1, 2, 4], [8.0, 4.2, 2.3], kind="time", work=None)

    assert table.work == "fixed"


def test_rates_that_rise_with_the_threads_are_of_all_threads() -> None:
    table = measured([1, 2, 4], [10, 19, 35], kind="throughput", work=None)

    assert table.work == "fixed"


def test_points_are_ordered_and_repeats_kept() -> None:
    table = measured([4, 1, 4], [2.0, 8.0, 2.1], kind="time", work="fixed")

    assert table.threads.tolist() == [1, 4, 4]
    assert table.values.tolist() == [8.0, 2.0, 2.1]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_values_that_measure_nothing_are_refused(value: float) -> None:
    with pytest.raises(ScalingError, match="point 2"):
        measured([1, 2], [1.0, value], kind="time", work="fixed")


def test_the_default_unit_follows_the_kind() -> None:
    assert measured([1], [1.0], kind="time", work="fixed").unit == "s"
    assert measured([1], [1.0], kind="throughput", work="fixed").unit == "1/s"
    assert np.isclose(measured([1], [4.0], kind="throughput", work="fixed").seconds[0], 0.25)
