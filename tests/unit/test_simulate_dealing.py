"""Whether work was dealt out beforehand, and what that changes; calls that ended late."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from batch_scene import FREE, LOCK, batch, member, turns

from contention_lab.simulate.batch import Conditions
from contention_lab.simulate.batch.dealing import was_dealt
from contention_lab.simulate.batch.run import Draw, Runner
from contention_lab.simulate.delay import slept_ns
from contention_lab.simulate.program import compute
from contention_lab.trace import load
from contention_lab.trace.builder import TraceBuilder
from contention_lab.trace.schema import ChunkKind, State

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.simulate.batch import Batch

MS = 1_000_000


def shares(*counts: int) -> list:
    return [
        member(number, turns(count, 100.0, [compute(100.0)])) for number, count in enumerate(counts)
    ]


def test_threads_that_end_one_after_the_other_with_as_many_holds_had_their_shares() -> None:
    assert was_dealt(shares(50, 50, 50), [10_000, 20_000, 30_000], 30_000.0)


def test_threads_that_end_together_may_have_taken_what_there_was() -> None:
    assert not was_dealt(shares(50, 50, 50), [29_000, 30_000, 28_500], 30_000.0)


def test_one_that_does_more_than_another_took_what_there_was() -> None:
    assert not was_dealt(shares(80, 45, 25), [30_000, 20_000, 10_000], 30_000.0)


def test_the_last_piece_of_work_may_be_long() -> None:
    long = [member(number, [compute(10_000.0)] * 3) for number in range(2)]

    assert not was_dealt(long, [20_000, 30_000], 30_000.0)


def test_one_thread_has_no_share() -> None:
    assert not was_dealt(shares(50), [10_000], 10_000.0)


def time_ns(of: Batch, threads: int) -> float:
    return Runner(of).run(Conditions(threads, 64, FREE), Draw(10**9)).elapsed_ns


def test_work_dealt_out_waits_for_its_thread_and_other_work_for_nobody() -> None:
    # One long piece of work and one short one by turns: of two threads, one is dealt all long ones.
    uneven = batch([compute(1000.0), compute(10.0)] * 16)
    dealt = replace(uneven, dealt=True)

    assert time_ns(uneven, 2) == pytest.approx(16 * 1010.0 / 2)
    assert time_ns(dealt, 2) == pytest.approx(16 * 1000.0)
    assert time_ns(dealt, 1) == time_ns(uneven, 1)


def test_all_of_the_work_dealt_out_is_done() -> None:
    dealt = replace(batch(turns(40, 100.0, [compute(50.0)]), turns(40, 100.0, [])), dealt=True)

    for threads in (1, 3, 8, 200):
        found = Runner(dealt).run(Conditions(threads, 256, FREE), Draw(10**9))
        assert found.used[LOCK] * found.elapsed_ns == pytest.approx(40 * 50.0)


def slept_ms(tmp_path: Path, calls: list[tuple[int, int]], delays: list[tuple[int, int]]) -> list:
    builder = TraceBuilder(duration_ns=100 * MS)
    thread = builder.add_thread(end_ns=100 * MS)
    for start, end in calls:
        builder.add_layer_event(ChunkKind.BLOCKING, start_ns=start, end_ns=end, thread=thread)
    for time, delay in delays:
        builder.add_state(
            time, thread, State.BLOCKED, cpu_ns=max(1, time // 2), delay_ns=max(1, delay)
        )
    builder.write(tmp_path / "late.clt")
    trace = load(tmp_path / "late.clt")
    found = slept_ns(trace, thread, trace.blocking)
    return [pytest.approx(ns / MS) for ns in found.tolist()]


def test_a_call_that_ended_late_slept_for_as_much_less(tmp_path: Path) -> None:
    # Between 0 and 40 ms, half of the 20 ms off its core it had none; after that, it always did.
    delays = [(0, 0), (40 * MS, 10 * MS), (80 * MS, 10 * MS)]

    found = slept_ms(tmp_path, [(10 * MS, 18 * MS), (50 * MS, 51 * MS)], delays)

    assert found == [4.0, 1.0]


def test_no_call_is_shorter_than_the_shortest_of_its_kind(tmp_path: Path) -> None:
    delays = [(0, 0), (40 * MS, 20 * MS), (80 * MS, 20 * MS)]

    assert slept_ms(tmp_path, [(10 * MS, 18 * MS), (50 * MS, 51 * MS)], delays) == [1.0, 1.0]


def test_where_nobody_counted_delays_calls_are_what_they_were(tmp_path: Path) -> None:
    assert slept_ms(tmp_path, [(10 * MS, 18 * MS)], []) == [8.0]
