"""The page's sections about the GIL and about locks of native code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from native_scene import MS, NativeScene

from contention_lab.analysis.flame import flame
from contention_lab.diagnosis import diagnose
from contention_lab.report import trace_page
from contention_lab.report.gil_view import gil_view
from contention_lab.report.native_lines import native_lines
from contention_lab.trace import ChunkKind, Trace, TraceBuilder, parse
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import View

STORE = "/usr/lib/libstore.so.1"


def scene() -> Trace:
    """Return a trace of two threads that wait for the GIL, and for a lock in a library."""
    made = NativeScene(duration_ms=100)
    parse_row, serve = made.stack("parse_row", 4), made.stack("serve", 8)
    parser, server = made.thread("parser"), made.thread("server")
    cache = made.builder.add_lock("threading.Lock", name="cache")
    add = made.builder.add_layer_event
    times = {"start_ns": 10 * MS, "end_ns": 40 * MS}
    add(ChunkKind.GIL_HOLDS, thread=parser, stack=parse_row, **times)
    add(ChunkKind.GIL_WAITS, thread=server, stack=serve, lock=cache, **times)
    add(ChunkKind.GIL_WAITS, thread=parser, stack=parse_row, start_ns=50 * MS, end_ns=51 * MS)
    add(ChunkKind.GIL_TOTALS, thread=parser, waits=1, wait_ns=MS, holds=4, held_ns=50 * MS, asked=1)
    add(ChunkKind.GIL_TOTALS, thread=server, waits=1, wait_ns=30 * MS, holds=2, held_ns=5 * MS)
    lock = made.lock(NativeKind.MUTEX, "store", STORE)
    idle = made.lock(NativeKind.COND, "pool_wait", STORE)
    native = made.native_stack(("store", STORE))
    made.wait(lock, server, 60, 70, stack=serve, native_stack=native, holder=parser)
    made.release(lock, parser, 68, stack=parse_row, native_stack=native)
    made.wait(idle, 0, 0, 90)
    return made.trace()


def page(trace: Trace) -> str:
    return trace_page([trace], [diagnose(trace).to_json()])


def test_the_gil_has_threads_places_and_locks_under_which_it_is_waited_for() -> None:
    view = gil_view(scene())

    assert view is not None
    assert view.exact
    assert (view.held_share, view.wait_s) == (pytest.approx(0.55), pytest.approx(0.031))
    assert (view.waits, view.wait_p50_s, view.wait_max_s) == (2, 0.001, 0.03)
    assert [(row.name, row.waits, row.asked) for row in view.threads] == [
        ("server", 1, 0),
        ("parser", 1, 1),
    ]
    assert [(row.function, row.waited_s, row.caused_s) for row in view.sites] == [
        ("serve", pytest.approx(0.03), 0.0),
        ("parse_row", pytest.approx(0.001), pytest.approx(0.03)),
    ]
    assert [(row.lock.label, row.wait_s) for row in view.in_locks] == [
        ("cache", pytest.approx(0.03))
    ]


@pytest.mark.parametrize(
    ("view", "functions"),
    [
        ("gil", {"serve": 30 * MS, "parse_row": MS}),
        # What no recorded hold covers is not blamed on anybody.
        ("gil-holder", {"parse_row": 30 * MS, "(hand-over: no recorded hold)": MS}),
    ],
)
def test_both_sides_of_the_gil_are_the_same_time(view: View, functions: dict[str, int]) -> None:
    tree = flame(scene(), view)

    assert {child.name: child.total_ns for child in tree.children} == functions


def test_a_native_lock_has_the_stacks_of_both_sides() -> None:
    lines = native_lines(scene())

    assert [(row.title, row.for_others) for row in lines.rows] == [
        ("a lock inside libstore", True),
        ("a lock inside libstore", False),
    ]
    mutex = lines.rows[1]
    assert (mutex.native_library, mutex.waits, mutex.wait_s) == ("libstore", 1, 0.01)
    assert mutex.unknown_s == pytest.approx(0.002)
    [victim], [holder] = mutex.victims, mutex.holders
    assert [frame.function for frame in victim.stack] == ["store", "serve"]
    assert next((frame.function, frame.place) for frame in holder.stack) == (
        "store",
        "libstore.so.1",
    )
    assert (holder.function, holder.seconds) == ("parse_row", pytest.approx(0.008))


def test_the_page_says_that_the_gil_was_measured() -> None:
    text = page(scene())

    assert "the preloaded layer saw every wait and every hold" in text
    assert 'id="tab-gil-holder"' in text
    assert "a lock inside libstore" in text
    assert "for others to do something, or not known" in text


def test_the_page_says_that_the_gil_was_only_sampled() -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    thread = builder.add_thread("worker")
    for at in range(100):
        builder.add_gil_sample(at * MS, thread)
    text = page(parse(builder.bytes()))

    assert "a probe looked about a thousand times a second" in text
    assert 'id="tab-gil"' not in text
    assert "Locks of native code" not in text


def test_a_trace_of_neither_has_no_such_sections() -> None:
    text = page(parse(TraceBuilder(duration_ns=MS).bytes()))

    assert 'id="gil"' not in text
    assert 'id="native"' not in text


def test_a_program_that_is_not_python_is_not_said_to_be() -> None:
    python = {"implementation": "", "version": "", "gil": False}
    trace = parse(TraceBuilder(meta={"python": python, "native_layer": True}).bytes())
    text = page(trace)

    assert "The program is not Python: its locks of the C library are recorded" in text
    assert "Locks made by Python code" not in text
    assert "without GIL" not in text
