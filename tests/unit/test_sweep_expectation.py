"""The shape of batch time against threads."""

from __future__ import annotations

import pytest

from contention_lab.sweep.expectation import observed_shape
from contention_lab.sweep.scenario import SHAPES

PROTOTYPE = {
    "global spinlock": ({1: 0.56, 2: 0.42, 4: 2.36, 8: 12.7, 16: 9.6, 32: 6.6}, "retrograde"),
    "global mutex": ({1: 0.55, 2: 0.42, 4: 0.44, 8: 0.50, 16: 0.55, 32: 0.56}, "flat"),
    "narrow lock": ({1: 0.54, 2: 0.29, 4: 0.30, 8: 0.32, 16: 0.36, 32: 0.38}, "scales"),
    "one server per thread": ({1: 0.55, 2: 0.29, 4: 0.29, 8: 0.33, 32: 0.40}, "scales"),
    "two thirds serial": ({n: 0.4 + 0.2 / min(n, 64) for n in (1, 2, 64)}, "flat"),
    "the first report": ({1: 492, 2: 526, 4: 640, 8: 916, 16: 1758, 32: 3287}, "retrograde"),
}


@pytest.mark.parametrize(("seconds", "shape"), PROTOTYPE.values(), ids=PROTOTYPE)
def test_published_figures_have_the_shape_they_are_known_for(
    seconds: dict[int, float], shape: str
) -> None:
    assert observed_shape(seconds) == shape
    assert shape in SHAPES


def test_one_thread_count_has_no_shape() -> None:
    assert observed_shape({4: 1.0}) is None
