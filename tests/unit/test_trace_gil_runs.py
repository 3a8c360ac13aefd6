"""Holds of the GIL that are written in runs come back one by one, to the nanosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contention_lab.trace import ChunkKind, TraceBuilder, parse
from contention_lab.trace.chunk import pack_header
from contention_lab.trace.layer_schema import GIL_HOLD, GIL_RUN, RUN_HOLDS, GilEventFlag

if TYPE_CHECKING:
    from contention_lab.trace.records import Records

SHORT_NS = 2**16 - 1


def holds(*rows: tuple[int, int, int, int, int, int]) -> Records:
    """Holds by start, end, thread, stack, waiters and flags."""
    return np.array([*rows], dtype=GIL_HOLD)


def run_of(some: Records) -> Records:
    """The record that holds of one thread, in order, are written as."""
    run = np.zeros(1, dtype=GIL_RUN)
    run["start_ns"], run["end_ns"] = some["start_ns"][0], some["end_ns"][-1]
    for name in ("thread", "stack", "waiters", "flags"):
        run[name] = some[name][-1]
    run["count"] = len(some)
    for at in range(len(some) - 1):
        run["step_ns"][0, 2 * at] = some["end_ns"][at] - some["start_ns"][at]
        run["step_ns"][0, 2 * at + 1] = some["start_ns"][at + 1] - some["end_ns"][at]
    return run


def read_back(*runs: Records) -> Records:
    builder = TraceBuilder()
    for thread in "ab":
        builder.add_thread(thread)
    builder.add_stack(builder.add_frame("f", "/app/f.py", 1))
    builder.add_layer_events(ChunkKind.GIL_RUNS, np.concatenate(runs))
    trace = parse(builder.bytes())
    assert not trace.problems
    return trace.gil_holds


def test_a_run_is_the_holds_it_was_made_of() -> None:
    some = holds((10, 25, 1, 0, 2, 0), (31, 90, 1, 0, 2, 0), (95, 700_000, 1, 1, 2, 0))

    assert (read_back(run_of(some)) == some).all()


def test_only_the_last_hold_has_the_stack_or_no_frames() -> None:
    asked, none = int(GilEventFlag.ASKED), int(GilEventFlag.NO_FRAMES)
    some = holds((1, 2, 2, 0, 1, asked), (3, 4, 2, 0, 1, asked | none))

    found = read_back(run_of(some))

    assert found["flags"].tolist() == [asked, asked | none]
    assert found["stack"].tolist() == [0, 0]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**40),
            st.lists(
                st.tuples(st.integers(0, SHORT_NS), st.integers(0, SHORT_NS)),
                max_size=RUN_HOLDS - 1,
            ),
            st.integers(0, 2**40),
            st.integers(0, 1),
            st.integers(0, 64),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_runs_of_every_length_come_back(
    runs: list[tuple[int, list[tuple[int, int]], int, int, int]],
) -> None:
    written, expected = [], []
    for start, steps, last_ns, stack, waiters in runs:
        rows, now = [], start
        for held, free in steps:
            rows.append((now, now + held, 1, 0, waiters, 0))
            now += held + free
        some = holds(*rows, (now, now + last_ns, 1, stack, waiters, 0))
        written.append(run_of(some))
        expected.append(some)

    found = read_back(*written)

    assert found.dtype == GIL_HOLD
    assert (found == np.concatenate(expected)).all()


def test_runs_and_single_holds_are_in_the_order_of_the_file() -> None:
    builder = TraceBuilder()
    builder.add_layer_event(ChunkKind.GIL_HOLDS, start_ns=5, end_ns=6)
    builder.add_layer_events(
        ChunkKind.GIL_RUNS, run_of(holds((7, 8, 0, 0, 1, 0), (9, 11, 0, 0, 1, 0)))
    )

    assert parse(builder.bytes()).gil_holds["end_ns"].tolist() == [6, 8, 11]


@pytest.mark.parametrize("count", [0, RUN_HOLDS + 1, 2**16 - 1])
def test_a_run_of_too_many_or_no_holds_is_left_out(count: int) -> None:
    builder = TraceBuilder()
    builder.add_layer_event(ChunkKind.GIL_RUNS, count=count)

    trace = parse(builder.bytes())

    assert len(trace.gil_holds) == 0
    assert f"has a run of {count} holds instead of 1 to 13" in trace.problems[0]


def test_a_run_whose_last_hold_ends_too_early_is_told() -> None:
    builder = TraceBuilder()
    builder.add_layer_events(
        ChunkKind.GIL_RUNS, run_of(holds((1, 9, 0, 0, 1, 0), (50, 40, 0, 0, 1, 0)))
    )

    assert "1 gil_holds end before they start" in " ".join(parse(builder.bytes()).problems)


def test_a_file_of_before_there_were_runs_is_read() -> None:
    old = pack_header(start_unix_ns=0, mono_ns=0, pid=1, level=1, clock=0, minor=0)
    builder = TraceBuilder()
    builder.add_layer_event(ChunkKind.GIL_HOLDS, start_ns=5, end_ns=6)
    file = builder.bytes()

    trace = parse(old + file[len(old) :])

    assert trace.gil_holds["end_ns"].tolist() == [6]
    assert not trace.problems
