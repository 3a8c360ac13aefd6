"""Waits in native code are rows of the timeline, too, with what is known of their holder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from native_scene import MS, NativeScene

from contention_lab.analysis import blame
from contention_lab.report.timeline import WaitState, timeline
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from contention_lab.trace import Trace


def database() -> Trace:
    """Thread `b` waits from 10 to 30 ms for a mutex of SQLite that `a` has; `c` is not known."""
    scene = NativeScene()
    lock = scene.lock(NativeKind.MUTEX, "sqlite3_mutex_enter", "/usr/lib/libsqlite3.so.0")
    native = scene.native_stack(("sqlite3_step", "/usr/lib/libsqlite3.so.0"))
    a, b = scene.thread("a"), scene.thread("b")
    place = scene.stack("Store.put", 12)
    scene.wait(lock, b, 10, 30, stack=place, native_stack=native, holder=a)
    scene.wait(lock, 0, 12, 20, native_stack=native)
    scene.release(lock, a, 29, native_stack=native)
    return scene.trace()


def test_a_wait_in_native_code_is_an_interval_of_its_thread() -> None:
    trace = database()

    line = timeline(trace, blame(trace))

    assert [thread.label for thread in line.threads] == ["b"]
    np.testing.assert_array_equal(line.waits.start_ns, [10 * MS])
    np.testing.assert_array_equal(line.waits.end_ns, [30 * MS])
    np.testing.assert_array_equal(line.waits.kind, [WaitState.NATIVE])


def test_it_says_what_is_waited_for_where_and_who_has_it() -> None:
    trace = database()

    (context,) = timeline(trace, blame(trace)).wait_contexts

    assert context.lock is not None
    assert "sqlite3" in context.lock.label
    assert context.site is not None
    assert context.site.function == "Store.put"
    assert context.holder is not None
    assert context.holder.label == "a"


def test_it_is_no_wait_for_a_lock_of_the_program() -> None:
    trace = database()

    line = timeline(trace, blame(trace))

    assert (line.wait_count, line.worst, line.lanes) == (0, (), ())
