"""Bars of thread time, whatever the threads are called."""

from __future__ import annotations

import pytest

from contention_lab.report.thread_time_plot import LONGEST_LABEL, Bar, rows_plot


@pytest.mark.parametrize("length", [1, LONGEST_LABEL, LONGEST_LABEL + 1, 60, 10_000])
@pytest.mark.parametrize("width", [340, 1100])
def test_long_names_leave_room_for_the_bar(length: int, width: int) -> None:
    name = "n" * (length - 1) + "!"
    drawn = rows_plot([Bar(name, {"run": 1.0, "spin": 2.0})], "plot", width, "css")

    assert "<svg" in drawn
    assert "!" in drawn
