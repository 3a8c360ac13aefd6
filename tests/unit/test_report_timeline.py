"""The timeline's data: what goes into the page, that it can be read back, and that sums stay."""

from __future__ import annotations

import base64
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from report_case import HOSTILE, chained_trace, flagship_trace

from contention_lab.analysis import blame
from contention_lab.report.flame_table import FrameTable
from contention_lab.report.packed_integers import LARGEST, packed, packed_steps
from contention_lab.report.point_view import point_view
from contention_lab.report.timeline import HoldState, Timeline, WaitState, timeline
from contention_lab.report.timeline_intervals import Intervals, coarsened, intervals
from contention_lab.report.timeline_section import timeline_data
from contention_lab.trace import Outcome, Trace, TraceBuilder, parse

NOTHING = np.zeros(0, dtype=np.int64)


def unpacked(text: str) -> list[int]:
    """What the page's script does, byte by byte."""
    found, number, shift = [], 0, 0
    for byte in base64.b64decode(text):
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(number)
            number, shift = 0, 0
    return found


def made(trace: Trace, most: int = 200_000) -> Timeline:
    return timeline(trace, blame(trace), most)


def in_page(trace: Trace, room: int = 10**7) -> Any:
    view = point_view("run", "run", "run", None, trace)
    frames = FrameTable()
    data, said = timeline_data([view], frames, room)
    return data["run"], said["run"], frames.rows


def busy(layer: Intervals) -> dict[tuple[int, int], tuple[int, int]]:
    """Number and length of the intervals of each row and kind."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    rows = zip(
        *(c.tolist() for c in (layer.row, layer.kind, layer.count, layer.busy_ns)), strict=True
    )
    for row, kind, count, ns in rows:
        before = found.get((row, kind), (0, 0))
        found[row, kind] = before[0] + count, before[1] + ns
    return found


@given(st.lists(st.integers(0, LARGEST)))
def test_packed_numbers_are_read_back(numbers: list[int]) -> None:
    assert unpacked(packed(np.array(numbers, dtype=np.int64))) == numbers


@given(st.lists(st.integers(0, 1 << 50)))
def test_packed_steps_are_read_back_by_adding_them_up(numbers: list[int]) -> None:
    ascending = np.sort(np.array(numbers, dtype=np.int64))

    assert np.cumsum(unpacked(packed_steps(ascending)), dtype=np.int64).tolist() == sorted(numbers)


@pytest.mark.parametrize("number", [-1, LARGEST + 1])
def test_numbers_that_a_script_cannot_tell_apart_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="2\\^53"):
        packed(np.array([number]))


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9_000), st.integers(1, 300), st.integers(0, 2)),
        min_size=1,
        max_size=80,
    ),
    st.integers(1, 40),
)
def test_merging_keeps_the_number_and_the_sum_of_each_row_and_kind(
    events: list[tuple[int, int, int, int]], limit: int
) -> None:
    row, start, length, kind = np.array(events, dtype=np.int64).T
    whole = intervals(row, start, start + length, kind, np.arange(len(row)))

    ((merged,), step) = coarsened([whole], limit, 10_000, [NOTHING])

    assert busy(merged) == busy(whole)
    assert (np.diff(merged.row) >= 0).all()
    again, _ = coarsened([merged], limit // 2, 10_000, [NOTHING])
    assert busy(again[0]) == busy(whole)
    single = merged.count == 1
    assert len(merged) == len(whole) or step > 0
    assert set(merged.start_ns[single]) <= set(whole.start_ns)


def test_a_run_spans_what_it_merges_and_has_the_context_of_the_longest() -> None:
    start = np.array([100, 103, 109, 500])
    length = np.array([2, 5, 1, 400])
    zeros = np.zeros(4, dtype=np.int64)
    layer = intervals(zeros, start, start + length, zeros, np.array([7, 8, 9, 10]))

    ((merged,), _) = coarsened([layer], 2, 1_000, [NOTHING])

    assert merged.start_ns.tolist() == [100, 500]
    assert merged.end_ns.tolist() == [110, 900]
    assert merged.count.tolist() == [3, 1]
    assert merged.context.tolist() == [8, 10]


def test_pinned_intervals_stay_single() -> None:
    start = np.arange(0, 1000, 10)
    zeros = np.zeros(100, dtype=np.int64)
    layer = intervals(zeros, start, start + 3, zeros, zeros)

    ((merged,), _) = coarsened([layer], 12, 1_000, [np.array([500])])

    assert len(merged) <= 13
    assert merged.count[merged.start_ns == 500].tolist() == [1]


def test_rows_hold_all_waiting_and_all_holding_of_the_trace() -> None:
    trace = flagship_trace(6)
    line = made(trace)

    contention = line.waits.where(line.waits.kind <= WaitState.SPINNING)
    waits = trace.waits
    assert contention.busy_ns.sum() == (waits["end_ns"] - waits["start_ns"] - waits["gil_ns"]).sum()
    assert line.holds.busy_ns.sum() == (trace.holds["end_ns"] - trace.holds["start_ns"]).sum()
    gil = line.waits.where(line.waits.kind == WaitState.GIL)
    assert gil.busy_ns.sum() == waits["gil_ns"].sum()
    assert [thread.name for thread in line.threads] == [f"worker-{i}" for i in range(6)]


def test_a_hold_is_parted_where_somebody_begins_to_wait() -> None:
    line = made(chained_trace())

    holds = list(
        zip(
            *(c.tolist() for c in (line.holds.row, line.holds.start_ns, line.holds.end_ns)),
            line.holds.kind.tolist(),
            strict=True,
        )
    )
    assert holds == [
        (1, 5_000, 10_000, HoldState.ALONE),
        (1, 10_000, 95_000, HoldState.WAITED_FOR),
        (2, 1_000, 6_000, HoldState.ALONE),
        (2, 6_000, 90_000, HoldState.WAITED_FOR),
    ]


def test_a_wait_names_the_lock_the_waiter_the_holder_and_what_it_did() -> None:
    line = made(chained_trace())

    front = line.wait_contexts[line.waits.context[0]]
    assert front.lock is not None
    assert front.lock.name == "outer"
    assert front.site is not None
    assert front.site.function == "ask"
    assert front.holder is not None
    assert front.holder.name == "middle"
    assert front.held_at is not None
    assert front.held_at.function == "nest"
    quiet = line.wait_contexts[line.waits.context[-1]]
    assert line.waits.kind[-1] == WaitState.COORDINATION
    assert quiet.holder is None


def test_an_open_wait_lasts_to_the_end() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(name="catalog"), builder.add_thread("worker")
    builder.add_wait(lock, thread, 100, 100, outcome=Outcome.OPEN)
    builder.add_hold(lock, thread, 4_000, 5_000)

    line = made(parse(builder.bytes()))

    assert line.waits.end_ns.tolist() == [5_000]


def test_the_page_has_every_interval_as_it_was() -> None:
    trace = flagship_trace(4)
    line = made(trace)
    data, said, _ = in_page(trace)

    waits = data["waits"]
    per_row = unpacked(waits["perRow"])
    steps = np.array(unpacked(waits["start"]))
    rows = np.split(steps, np.cumsum(per_row)[:-1])
    assert np.concatenate([np.cumsum(row) for row in rows]).tolist() == line.waits.start_ns.tolist()
    assert unpacked(waits["length"]) == line.waits.busy_ns.tolist()
    kinds = [what % len(WaitState) for what in unpacked(waits["what"])]
    assert kinds == line.waits.kind.tolist()
    assert said.aggregated == ""


def test_a_page_with_little_room_says_that_it_is_aggregated_and_keeps_the_longest_waits() -> None:
    trace = flagship_trace(8, steps=60)
    room = 20_000
    data, said, _ = in_page(trace, room)

    assert said.aggregated.startswith("Aggregated: ")
    waits = trace.waits["end_ns"] - trace.waits["start_ns"] - trace.waits["gil_ns"]
    assert said.rows[0].wait_s == pytest.approx(waits.max() / 1e9)
    assert unpacked(data["waits"]["length"])[said.rows[0].number] == waits.max()


def test_the_sentence_tells_who_waited_longest_for_what() -> None:
    _, said, _ = in_page(chained_trace())

    text = said.sentence.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert text.startswith("3 threads over 300 µs: 2 waits for locks, 170 µs in all; the longest, ")
    assert "front waiting for “outer”, held longest by middle in nest." in text


def test_an_empty_trace_has_an_empty_timeline() -> None:
    data, said, _ = in_page(parse(TraceBuilder().bytes()))

    assert data["rows"] == 0
    assert said.rows == ()


def test_hostile_names_lose_what_cannot_be_seen() -> None:
    trace = flagship_trace(3, names=(HOSTILE[1], HOSTILE[2]))

    data, said, frames = in_page(trace)

    texts = [data["locks"][0][0], said.sentence, *(frame[0] for frame in frames)]
    assert not any(character in text for text in texts for character in "\u202e\x00\x07\x1b")
