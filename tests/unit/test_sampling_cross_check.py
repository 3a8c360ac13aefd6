"""Samples beside a recording: a difference within their interval is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sampled_scene import ASLEEP, HOLDS, OUTSIDE, RUNS, STEP_NS, TAKES, scene

from contention_lab.cli.cross_check import compared
from contention_lab.trace import TraceBuilder, parse

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace


def samples(tmp_path: Path) -> Trace:
    """One thread waits half of the time, another has the lock: a quarter of both threads' time."""
    waits = [(TAKES, ASLEEP, 0x7F00), (HOLDS, RUNS, 0)]
    works = [(OUTSIDE, RUNS, 0), (OUTSIDE, RUNS, 0)]
    return scene(tmp_path, [waits if number // 5 % 2 else works for number in range(200)])


def recording(waited: int) -> Trace:
    """Return a recording in which so many waits of 50 ms were made for that lock."""
    builder = TraceBuilder(duration_ns=201 * STEP_NS)
    lock = builder.add_lock("threading.Lock", name="Pool._lock")
    thread = builder.add_thread("T0")
    for number in range(waited):
        begin = (10 * number + 5) * STEP_NS
        builder.add_wait(lock, thread, begin, begin + 5 * STEP_NS)
    return parse(builder.bytes())


def test_what_both_see_agrees(tmp_path: Path) -> None:
    found = compared(recording(20), samples(tmp_path))

    assert [one.what for one in found] == ["locks, all together", "`Pool._lock`"]
    assert all(one.agree for one in found)
    assert abs(found[0].events - 0.25) < 0.01


def test_what_only_samples_see_disagrees(tmp_path: Path) -> None:
    found = compared(recording(5), samples(tmp_path))

    assert not any(one.agree for one in found)
    assert str(found[1]).endswith("DISAGREE")
