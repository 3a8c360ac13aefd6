"""Sums of GIL waits and holds, by thread and by place, on traces with known answers."""

from __future__ import annotations

import pytest

from contention_lab.analysis import selected, thread_time
from contention_lab.analysis.gil_row import gil_row
from contention_lab.analysis.gil_waits import GilWaits, gil_waits
from contention_lab.trace import ChunkKind, TraceBuilder, parse
from contention_lab.trace.layer_schema import GilEventFlag

MS = 1_000_000


class Program:
    """Two threads, each in a function of its own."""

    def __init__(self) -> None:
        self.builder = TraceBuilder(duration_ns=100 * MS)
        self.threads = [self.builder.add_thread(name) for name in ("first", "second")]
        frames = [self.builder.add_frame(name, "/app/work.py", 10) for name in ("load", "parse")]
        library = self.builder.add_frame("get", "/usr/lib/python3.11/queue.py", 171)
        self.stacks = [self.builder.add_stack(library, frame) for frame in frames]
        self.lock = self.builder.add_lock("Mutex")

    def wait(self, who: int, start_ms: float, end_ms: float, **values: int) -> None:
        self._event(ChunkKind.GIL_WAITS, who, start_ms, end_ms, values)

    def hold(self, who: int, start_ms: float, end_ms: float, **values: int) -> None:
        self._event(ChunkKind.GIL_HOLDS, who, start_ms, end_ms, values)

    def total(self, who: int, **values: int) -> None:
        thread = self.threads[who]
        self.builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=thread, **values)

    def table(self) -> GilWaits:
        table = gil_waits(parse(self.builder.bytes()))
        assert table is not None
        return table

    def _event(
        self, kind: ChunkKind, who: int, start_ms: float, end_ms: float, values: dict[str, int]
    ) -> None:
        times = {"start_ns": int(start_ms * MS), "end_ns": int(end_ms * MS)}
        fields = {"thread": self.threads[who], "stack": self.stacks[who], **times, **values}
        self.builder.add_layer_event(kind, **fields)


def places(table: GilWaits) -> dict[str, tuple[float, float]]:
    """Return the milliseconds waited and held by function."""
    return {
        site.site.function if site.site else "": (
            round(site.waited_s * 1e3, 6),
            round(site.held_s * 1e3, 6),
        )
        for site in table.sites
    }


def test_a_trace_without_the_layer_says_nothing() -> None:
    assert gil_waits(parse(TraceBuilder().bytes())) is None


def test_threads_are_summed_from_totals_and_ordered_by_their_waiting() -> None:
    program = Program()
    program.total(0, waits=1, wait_ns=1 * MS, holds=4, held_ns=60 * MS, asked=1)
    program.total(1, waits=9, wait_ns=30 * MS, holds=9, held_ns=20 * MS, asked=9)

    table = program.table()

    assert [row.thread.name for row in table.threads] == ["second", "first"]
    assert [row.share for row in table.threads] == [0.25, 0.75]
    assert [row.voluntary for row in table.threads] == [0, 3]
    assert (table.wait_s, table.held_s) == (pytest.approx(0.031), pytest.approx(0.080))


def test_only_the_last_total_of_a_thread_counts() -> None:
    program = Program()
    program.total(0, held_ns=1 * MS)
    program.total(0, held_ns=5 * MS)

    assert program.table().held_s == pytest.approx(0.005)


def test_waits_and_holds_are_at_the_innermost_place_of_user_code() -> None:
    program = Program()
    program.total(0)
    program.wait(0, 0, 10)
    program.hold(1, 0, 10)
    program.wait(1, 10, 12)

    assert places(program.table()) == {"load": (10.0, 0.0), "parse": (2.0, 10.0)}


def test_events_without_a_stack_belong_to_the_next_one_of_the_thread_that_has_one() -> None:
    program = Program()
    program.total(0)
    program.wait(0, 0, 1, stack=0)
    program.wait(1, 1, 2, stack=0)
    program.wait(0, 3, 5)
    program.wait(1, 6, 7)
    program.wait(0, 8, 11, stack=0)

    assert places(program.table()) == {"load": (3.0, 0), "parse": (2.0, 0), "": (3.0, 0)}


def test_a_thread_that_was_not_in_python_waits_at_no_place() -> None:
    program = Program()
    program.total(0)
    program.wait(0, 0, 8, stack=0, flags=GilEventFlag.NO_FRAMES)
    program.wait(0, 9, 10)

    assert places(program.table()) == {"": (8.0, 0), "load": (1.0, 0)}


def test_waits_inside_a_critical_section_are_summed_apart() -> None:
    program = Program()
    program.total(0, wait_ns=15 * MS)
    program.wait(0, 0, 10, lock=program.lock)
    program.wait(0, 20, 25)

    assert program.table().waits_in_locks_s == pytest.approx(0.010)


def test_a_wait_is_caused_by_the_holds_it_overlaps() -> None:
    program = Program()
    program.total(0, waits=1)
    program.hold(0, 0, 10)
    program.wait(1, 2, 14)  # 8 ms of it during the first hold, 2 during the third's
    program.hold(0, 12, 20)
    program.wait(1, 16, 20)

    table = program.table()
    [load] = [site for site in table.sites if site.site and site.site.function == "load"]

    assert load.caused_s == pytest.approx(0.014)
    assert load.held_s == pytest.approx(0.018)


def test_its_waits_have_quantiles_and_its_holds_a_share_of_the_time() -> None:
    program = Program()
    for at in range(10):
        program.wait(0, at, at + 0.1 * (at + 1))
    program.total(0, waits=10, wait_ns=5 * MS, held_ns=40 * MS)

    table = program.table()

    assert table.waits == 10
    assert table.held_share == pytest.approx(0.4)
    quantiles = table.wait_p50_s, table.wait_p99_s, table.wait_max_s
    assert quantiles == pytest.approx((0.0005, 0.001, 0.001))


def test_waits_under_a_lock_are_told_by_lock() -> None:
    program = Program()
    program.total(0, waits=2)
    other = program.builder.add_lock("Mutex", name="cache")
    program.wait(0, 0, 3, lock=program.lock)
    program.wait(0, 4, 9, lock=other)
    program.wait(0, 10, 11)

    rows = program.table().in_locks

    assert [(row.lock.label, row.waits, row.wait_s) for row in rows] == [
        ("cache", 1, pytest.approx(0.005)),
        ("lock #1", 1, pytest.approx(0.003)),
    ]


def test_it_is_a_row_like_those_of_locks() -> None:
    program = Program()
    program.wait(0, 0, 3)
    program.total(0, waits=1, wait_ns=3 * MS, holds=7, held_ns=25 * MS)
    row = gil_row(parse(program.builder.bytes()))

    assert row is not None
    assert (row.lock.label, row.acquires, row.contended, row.threads) == ("GIL", 7, 1, 1)
    assert (row.wait_s, row.utilisation) == (pytest.approx(0.003), pytest.approx(0.25))


def test_a_choice_of_threads_or_stacks_is_one_of_its_events() -> None:
    program = Program()
    for who, end_ms in ((0, 3), (1, 9)):
        program.wait(who, 0, end_ms)
        program.total(who, waits=1, wait_ns=end_ms * MS, holds=1)
    trace = parse(program.builder.bytes())
    rows = [gil_row(selected(trace, **by)) for by in ({"thread": "first"}, {"stack": "parse"})]

    assert [row.wait_s for row in rows if row] == [pytest.approx(0.003), pytest.approx(0.009)]


def test_a_threads_time_has_all_its_waiting_for_the_gil() -> None:
    program = Program()
    program.total(0, waits=3, wait_ns=30 * MS)
    program.builder.add_wait(program.lock, 2, 0, 20 * MS, gil_ns=5 * MS)
    first, second = thread_time(parse(program.builder.bytes()))

    assert first.gil_s == pytest.approx(0.030)
    assert first.other_s == pytest.approx(0.070)
    assert second.gil_s == pytest.approx(0.005)
