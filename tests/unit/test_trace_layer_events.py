"""Events of the layer below Python come back from a file as they were written."""

from __future__ import annotations

import pytest

from contention_lab.trace import ChunkKind, TraceBuilder, parse
from contention_lab.trace.layer_schema import BlockingFlag, WorldCall
from contention_lab.trace.schema import FIXED_RECORDS, LAYER_KINDS


def test_a_trace_without_the_layer_has_no_such_events() -> None:
    trace = parse(TraceBuilder().bytes())

    found = (trace.gil_waits, trace.gil_holds, trace.gil_totals, trace.blocking)

    assert [len(events) for events in found] == [0, 0, 0, 0]
    assert not trace.problems


def test_events_come_back_in_the_order_of_the_file() -> None:
    builder = TraceBuilder(chunk_bytes=64)
    thread, lock = builder.add_thread("a"), builder.add_lock("Mutex")
    stack = builder.add_stack(builder.add_frame("f", "/app/f.py", 1))
    for start in (10, 30, 50):
        builder.add_layer_event(
            ChunkKind.BLOCKING,
            start_ns=start,
            end_ns=start + 5,
            thread=thread,
            lock=lock,
            stack=stack,
            call=WorldCall.RECV,
            flags=BlockingFlag.OPEN,
        )
        builder.add_layer_event(ChunkKind.GIL_WAITS, start_ns=start, end_ns=start + 1)

    trace = parse(builder.bytes())

    assert trace.blocking["start_ns"].tolist() == [10, 30, 50]
    assert trace.blocking["call"].tolist() == [3, 3, 3]
    assert trace.gil_waits["end_ns"].tolist() == [11, 31, 51]
    assert not trace.problems


def test_the_recording_lasts_as_long_as_its_last_event() -> None:
    builder = TraceBuilder(duration_ns=0)
    builder.add_layer_event(ChunkKind.GIL_HOLDS, start_ns=10, end_ns=900)

    assert parse(builder.bytes()).duration_ns == 900


@pytest.mark.parametrize("kind", LAYER_KINDS)
def test_what_cannot_be_true_is_counted(kind: ChunkKind) -> None:
    builder = TraceBuilder()
    builder.add_layer_event(kind, thread=7)
    if "end_ns" in (FIXED_RECORDS[kind].names or ()):
        builder.add_layer_event(kind, start_ns=9, end_ns=3)

    problems = " ".join(parse(builder.bytes()).problems)

    assert f"1 {kind.name.lower()} have a thread the file does not define" in problems
    if "end_ns" in (FIXED_RECORDS[kind].names or ()):
        assert f"1 {kind.name.lower()} end before they start" in problems
