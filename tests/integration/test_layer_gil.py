"""Waits for the GIL and holds of it, against programs whose truth is arithmetic."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from layer_programs import Run, functions, length_ns, needs_layer, run_recorded

from contention_lab.analysis.gil_blame import ns_by_stack
from contention_lab.analysis.gil_waits import gil_waits
from contention_lab.capture.metadata import gil_enabled
from contention_lab.trace.chunk import chunks
from contention_lab.trace.layer_schema import GilEventFlag
from contention_lab.trace.schema import HEADER, ChunkKind

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, pytest.mark.skipif(not gil_enabled(), reason="there is no GIL")]

EDGE_NS = 200_000
COMPUTE = """
import threading, time

def compute(turns):
    total = 0
    for i in range(turns):
        total += i * i % 7
    return total

def in_threads(count, work):
    workers = [threading.Thread(target=work, name=f"worker {i}") for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
"""


def run(folder: Path, program: str, *options: str) -> Run:
    done = run_recorded(folder, COMPUTE + program, options=options)
    assert done.status == 0, done.err
    return done


def test_a_computing_thread_has_the_gil_or_waits_for_it(tmp_path: Path) -> None:
    table = gil_waits(run(tmp_path, "in_threads(3, lambda: compute(2_000_000))").trace)

    assert table is not None
    workers = [row for row in table.threads if row.thread.name.startswith("worker")]
    assert len(workers) == 3
    for row in workers:
        assert 0.9 * row.wall_s <= row.wait_s + row.held_s <= 1.001 * row.wall_s
        assert row.share > 0.1


def test_threads_that_compute_are_made_to_give_the_gil_up(tmp_path: Path) -> None:
    trace = run(tmp_path, "in_threads(3, lambda: compute(2_000_000))").trace

    waits = [wait for wait in trace.gil_waits if "compute" in functions(trace, wait["stack"])]
    holds = [hold for hold in trace.gil_holds if "compute" in functions(trace, hold["stack"])]
    asked = int(GilEventFlag.ASKED)

    assert len(waits) > 20
    assert len(holds) > 20
    assert sum(length_ns(wait) for wait in waits) > sum(map(length_ns, trace.gil_waits)) / 2
    assert sum(int(hold["flags"]) & asked for hold in holds) > 0.8 * len(holds)
    assert {int(wait["holder"]) for wait in waits} <= {*trace.threads, 0}


def test_holds_of_the_gil_do_not_overlap(tmp_path: Path) -> None:
    trace = run(tmp_path, "in_threads(4, lambda: [compute(2_000) for _ in range(600)])").trace

    holds = sorted((int(hold["start_ns"]), int(hold["end_ns"])) for hold in trace.gil_holds)

    assert len(holds) > 10
    for (_, end), (start, _) in pairwise(holds):
        assert end <= start
    assert int(trace.gil_totals["held_ns"].sum()) <= trace.duration_ns


def test_short_holds_in_a_row_are_each_there_to_the_nanosecond(tmp_path: Path) -> None:
    program = """
import zlib
data = bytes(6_000) # of so many, it lets go of the GIL
started = threading.Event()
def flicker():
    started.wait()
    for _ in range(4_000):
        zlib.crc32(data)
def wait_for_flicker(): # all the time: who waits for nothing gets no stack of who has it
    while worker.is_alive():
        compute(1_000)
worker = threading.Thread(target=flicker, name="flicker")
others = [threading.Thread(target=wait_for_flicker) for _ in range(2)]
for thread in [worker, *others]:
    thread.start()
started.set()
for thread in [worker, *others]:
    thread.join()
"""
    done = run(tmp_path, program)
    trace = done.trace
    [flicker] = [thread.id for thread in trace.threads.values() if thread.name == "flicker"]
    file = (done.folder / "run.clt").read_bytes()
    written: Counter[int] = Counter()
    for chunk in chunks(memoryview(file), HEADER.itemsize, []):
        written[chunk.kind] += chunk.count

    mine = trace.gil_holds[trace.gil_holds["thread"] == flicker]
    [total] = trace.gil_totals[trace.gil_totals["thread"] == flicker]

    assert 2_000 < len(mine) <= int(total["holds"])
    assert sum(map(length_ns, mine)) <= int(total["held_ns"])
    assert written[ChunkKind.GIL_RUNS] > 0
    assert written[ChunkKind.GIL_RUNS] + written[ChunkKind.GIL_HOLDS] < len(trace.gil_holds) / 2
    order = np.argsort(trace.gil_holds["start_ns"])
    begin, end = trace.gil_holds["start_ns"][order], trace.gil_holds["end_ns"][order]
    assert (end[:-1] <= begin[1:]).all()
    mine = mine[np.argsort(mine["end_ns"])]
    last = np.flatnonzero(mine["stack"])[-1]  # a hold has the next stack read: later ones have none
    assert last > 0.5 * len(mine)
    by_stack = ns_by_stack(mine[: last + 1])
    placed = sum(ns for stack, ns in by_stack.items() if "flicker" in functions(trace, stack))
    assert placed > 0.9 * sum(by_stack.values())


def test_a_thread_that_sleeps_gives_the_gil_up_by_itself_and_does_not_wait(tmp_path: Path) -> None:
    program = "in_threads(2, lambda: [time.sleep(0.002) for _ in range(50)])"

    table = gil_waits(run(tmp_path, program).trace)

    assert table is not None
    for row in table.threads:
        if row.thread.name.startswith("worker"):
            assert row.holds >= 50
            assert row.voluntary >= 45
            assert row.wait_s < row.wall_s / 4
            assert row.held_s < row.wall_s / 4


def test_one_thread_alone_never_waits(tmp_path: Path) -> None:
    table = gil_waits(run(tmp_path, "compute(300_000)").trace)

    assert table is not None
    assert table.wait_s == 0
    [main] = table.threads
    assert main.thread.is_main
    assert main.held_s > 0


def test_an_input_thread_waits_for_those_that_compute(tmp_path: Path) -> None:
    program = """
def read():
    for _ in range(20):
        time.sleep(0.001)

computing = threading.Thread(target=compute, args=(6_000_000,), name="computing")
reading = threading.Thread(target=read, name="reading")
computing.start(); reading.start(); reading.join(); computing.join()
"""
    trace = run(tmp_path, program).trace
    threads = {thread.name: thread.id for thread in trace.threads.values()}

    waits = [wait for wait in trace.gil_waits if wait["thread"] == threads["reading"]]
    behind = [wait for wait in waits if wait["holder"] == threads["computing"]]

    assert len(behind) >= 10
    assert "read" in functions(trace, behind[-1]["stack"])
    # A switch interval of 5 ms each, more where the machine is busy.
    assert sum(map(length_ns, behind)) > len(behind) * 3_000_000
    blamed = [hold for hold in trace.gil_holds if hold["thread"] == threads["computing"]]
    assert any("compute" in functions(trace, hold["stack"]) for hold in blamed)


def test_a_wait_inside_a_critical_section_names_the_lock(tmp_path: Path) -> None:
    program = """
lock = threading.Lock()
def work():
    for _ in range(20):
        with lock:
            compute(100_000)
other = threading.Thread(target=compute, args=(3_000_000,))
other.start(); work(); other.join()
"""
    trace = run(tmp_path, program).trace
    [lock] = [
        lock.id
        for lock in trace.locks.values()
        if lock.type == "threading.Lock" and lock.site and lock.site.place == "program.py:17"
    ]

    inside = [wait for wait in trace.gil_waits if wait["lock"] == lock]

    assert inside
    assert any("work" in functions(trace, wait["stack"]) for wait in inside)
    assert all(wait["lock"] in (0, lock) for wait in trace.gil_waits)


def test_the_level_counters_has_the_sums_only(tmp_path: Path) -> None:
    trace = run(tmp_path, "in_threads(3, lambda: compute(1_000_000))", "--level", "counters").trace

    assert int(trace.gil_totals["wait_ns"].sum()) > 0
    assert len(trace.gil_waits) == len(trace.gil_holds) == 0


def test_a_trace_says_where_it_has_the_gil_from(tmp_path: Path) -> None:
    with_layer = run(tmp_path, "compute(1)").trace.meta
    without = run(tmp_path, "compute(1)", "--no-native-layer").trace.meta

    assert (with_layer["native_layer"], with_layer["gil_source"]) == (True, "events")
    assert (without["native_layer"], without["gil_source"]) == (False, "samples")


def test_no_sample_gives_the_gil_to_a_thread_that_waits_for_it(tmp_path: Path) -> None:
    trace = run(tmp_path, "in_threads(3, lambda: compute(3_000_000))").trace
    held = trace.gil[trace.gil["holder"] != 0]
    waits = trace.gil_waits

    # The moment of a sample is taken before the look: a change of hands may be between the two.
    waiting = [
        (waits["thread"] == sample["holder"])
        & (waits["start_ns"] + EDGE_NS < sample["time_ns"])
        & (sample["time_ns"] + EDGE_NS < waits["end_ns"])
        for sample in held
    ]

    assert len(held) > 20
    assert sum(bool(some.any()) for some in waiting) <= 0.02 * len(held)


def test_a_wait_still_open_at_the_end_is_there(tmp_path: Path) -> None:
    program = """
import os
def spin():
    while True:
        pass
for i in range(3):
    threading.Thread(target=spin, daemon=True).start()
time.sleep(0.1)
"""
    trace = run(tmp_path, program).trace

    opened = [wait for wait in trace.gil_waits if wait["flags"] & int(GilEventFlag.OPEN)]

    assert 1 <= len(opened) <= 3
    assert all(wait["end_ns"] <= trace.duration_ns for wait in opened)


def test_sixty_four_threads_lose_no_wait(tmp_path: Path) -> None:
    program = """
lock = threading.Lock()
def work():
    for _ in range(30):
        compute(300)
        with lock:
            time.sleep(0.0001)
in_threads(64, work)
"""
    done = run(tmp_path, program)
    trace = done.trace

    assert trace.status is not None
    assert trace.status["dropped_waits"] == 0
    assert len(trace.gil_waits) == int(trace.gil_totals["waits"].sum())
    recorded = sum(length_ns(wait) for wait in trace.gil_waits)
    assert recorded == pytest.approx(int(trace.gil_totals["wait_ns"].sum()), rel=0.001)
