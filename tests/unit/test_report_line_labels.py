"""Labels at the end of lines keep clear of each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contention_lab.report.line_labels import spread


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread([10, 50, 90], [10, 10, 10], 0, 100) == [10, 50, 90]


def test_labels_that_meet_move_apart_evenly() -> None:
    assert spread([50, 50], [10, 10], 0, 100) == [45, 55]


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(5, 30)), min_size=1, max_size=8).map(sorted))
def test_no_two_labels_overlap_and_all_stay_inside(boxes: list[tuple[float, float]]) -> None:
    heights = [height for _, height in boxes]
    places = spread([centre for centre, _ in boxes], heights, 0, 300)

    for at in range(1, len(boxes)):
        assert places[at] - places[at - 1] >= (heights[at] + heights[at - 1]) / 2 - 1e-6
    assert places[0] >= heights[0] / 2 - 1e-6
    assert places[-1] <= 300 - heights[-1] / 2 + 1e-6
