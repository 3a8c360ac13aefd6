"""Which thread blocks which, from holds and, where none is recorded, from what a wait names."""

from __future__ import annotations

import numpy as np

from contention_lab.analysis import blame, block_matrix
from contention_lab.analysis.thread_matrix import thread_matrix
from contention_lab.report.block_table import thread_table
from contention_lab.trace import Trace, TraceBuilder, parse


def two_waiters() -> Trace:
    """`a` holds for 100 ns; `b` waits 60 of them and 10 more, `c` waits 30 and 10 more."""
    builder = TraceBuilder()
    lock = builder.add_lock(name="l")
    a, b, c = (builder.add_thread(name) for name in "abc")
    builder.add_hold(lock, a, 0, 100, waiters=2)
    builder.add_wait(lock, b, 40, 110, holder=a)
    builder.add_wait(lock, c, 70, 110, holder=a)
    return parse(builder.bytes())


def test_waiting_is_divided_over_the_threads_that_held() -> None:
    trace = two_waiters()

    matrix = thread_matrix(trace, blame(trace))

    assert [thread.label for thread in matrix.victims] == ["b", "c"]
    assert [thread and thread.label for thread in matrix.culprits] == ["a", None]
    np.testing.assert_allclose(matrix.seconds * 1e9, [[60, 10], [30, 10]])


def test_its_sum_is_that_of_the_matrix_of_places() -> None:
    trace = two_waiters()
    divided = blame(trace)

    by_thread, by_place = thread_matrix(trace, divided), block_matrix(trace, divided)
    np.testing.assert_allclose(by_thread.seconds.sum(), by_place.seconds.sum())


def test_a_holder_that_only_the_wait_names_is_blamed() -> None:
    builder = TraceBuilder()
    lock = builder.add_lock(name="l")
    a, b = builder.add_thread("a"), builder.add_thread("b")
    builder.add_wait(lock, b, 40, 110, holder=a)
    trace = parse(builder.bytes())

    matrix = thread_matrix(trace, blame(trace))

    assert [thread and thread.label for thread in matrix.culprits] == ["a"]
    np.testing.assert_allclose(matrix.seconds.sum() * 1e9, 70)


def test_the_table_of_no_waiting_is_empty() -> None:
    trace = parse(TraceBuilder().bytes())

    assert thread_table(thread_matrix(trace, blame(trace))).culprits == ()
