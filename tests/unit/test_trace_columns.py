"""Records by field: the same as the arrays of records, whatever the chunks they come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contention_lab.analysis.intervals import hold_spans, lock_waits
from contention_lab.trace import Outcome, TraceBuilder, load, parse

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace


def many(chunk_bytes: int) -> TraceBuilder:
    builder = TraceBuilder(chunk_bytes=chunk_bytes)
    locks = [builder.add_lock("threading.Lock") for _ in range(3)]
    threads = [builder.add_thread(f"worker {i}") for i in range(4)]
    for turn in range(500):
        lock, thread = locks[turn % 3], threads[turn % 4]
        builder.add_wait(lock, thread, turn * 10, turn * 10 + 7, holder=threads[0], spin_ns=turn)
        builder.add_hold(lock, thread, turn * 10 + 7, turn * 10 + 9)
    return builder


@pytest.fixture(params=[400, 1 << 20], ids=["many chunks", "one chunk"])
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Trace:
    many(request.param).write(tmp_path / "run.clt")
    return load(tmp_path / "run.clt")


def test_fields_are_those_of_the_records(trace: Trace) -> None:
    for columns, records in (
        (trace.wait_columns, trace.waits),
        (trace.hold_columns, trace.holds),
    ):
        assert len(columns) == len(records) == 500
        for name in records.dtype.names or ():
            assert columns[name].tolist() == records[name].tolist()
            assert columns.once(name)[0].tolist() == records[name].tolist()


def test_records_are_found_by_position_and_by_mask(trace: Trace) -> None:
    waits, columns = trace.waits, trace.wait_columns
    assert columns[123] == waits[123]
    assert columns[-1] == waits[-1]
    some = np.array([400, 3, 3, 77])
    assert columns[some].tolist() == waits[some].tolist()
    mask = waits["lock"] == 2
    assert columns[mask].tolist() == waits[mask].tolist()
    assert len(columns[np.zeros(500, dtype=np.bool_)]) == 0


def test_fields_are_read_only_and_read_once(trace: Trace) -> None:
    lock = trace.wait_columns["lock"]
    assert trace.wait_columns["lock"] is lock
    with pytest.raises(ValueError, match="read-only"):
        lock[0] = 1


def test_a_record_that_a_later_one_replaces_is_no_part_of_a_field() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock("threading.Lock"), builder.add_thread("worker")
    builder.add_wait(lock, thread, 10, 0, outcome=Outcome.OPEN)
    builder.add_wait(lock, thread, 10, 30)
    builder.add_wait(lock, thread, 50, 0, outcome=Outcome.OPEN)
    trace = parse(builder.bytes())
    assert trace.wait_columns["end_ns"].tolist() == trace.waits["end_ns"].tolist() == [30, 0]
    assert trace.wait_columns[1]["start_ns"] == 50


def test_short_holds_have_the_fields_of_all_holds() -> None:
    builder = TraceBuilder(chunk_bytes=200)
    lock, thread = builder.add_lock("threading.Lock"), builder.add_thread("worker")
    for turn in range(40):
        builder.add_hold(lock, thread, turn * 100, turn * 100 + 50, waiters=1)
        builder.add_short_hold(lock, thread, turn * 100 + 60, 20)
    trace = parse(builder.bytes())
    for name in trace.holds.dtype.names or ():
        assert trace.hold_columns[name].tolist() == trace.holds[name].tolist()


def test_spans_are_worked_out_once_and_cannot_be_changed(trace: Trace) -> None:
    assert lock_waits(trace) is lock_waits(trace)
    assert hold_spans(trace).start_ns.flags.writeable is False


def test_a_trace_without_records_has_empty_fields() -> None:
    trace = parse(TraceBuilder().bytes())
    assert len(trace.wait_columns) == len(trace.hold_columns["lock"]) == 0
