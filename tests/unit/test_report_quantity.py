"""Figures as text."""

from __future__ import annotations

import math

import pytest

from contention_lab.report.quantity import count, seconds, share, size, times


def plain(text: str) -> str:
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (12.7, "12.7 s"),
        (0.56, "560 ms"),
        (0.99999, "1.00 s"),
        (9.996, "10.0 s"),
        (99.96, "100 s"),
        (3287.0, "3,287 s"),
        (1.5e-6, "1.50 µs"),
        (4.2e-8, "42.0 ns"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(value: float | None, text: str) -> None:
    assert plain(seconds(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 %"), (0.816, "82 %"), (0.0816, "8.2 %"), (0.0002, "<0.1 %"), (1, "100 %"), (None, "–")],
)
def test_a_share_is_in_per_cent(value: float | None, text: str) -> None:
    assert plain(share(value)) == text


def test_counts_sizes_and_ratios_are_short() -> None:
    assert count(1234567) == "1,234,567"
    assert plain(size(999)) == "999 B"
    assert plain(size(48_000)) == "48.0 kB"
    assert plain(size(12_345_678)) == "12.3 MB"
    assert times(22.64) == "22.6×"
    assert count(None) == size(None) == times(None) == "–"
