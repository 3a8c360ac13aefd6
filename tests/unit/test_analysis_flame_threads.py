"""Flame graphs with each thread's part, and waiters and holders joined at the lock."""

from __future__ import annotations

import pytest

from contention_lab.analysis import FlameNode, flame
from contention_lab.analysis.weighted_stacks import View, weighted_stacks
from contention_lab.report.flame_table import FrameTable, ThreadTable, flatten
from contention_lab.trace import Trace, TraceBuilder, parse


def two_waiters() -> Trace:
    """`a` holds for 100 ns in `work`; `b` waits 60 of them and 10 more in `get`, `c` 30 and 10."""
    builder = TraceBuilder()
    site = builder.add_frame("make", "/srv/app.py", 3)
    lock = builder.add_lock(name="l", site=site)
    a, b, c = (builder.add_thread(name) for name in "abc")
    run = builder.add_frame("run", "/srv/app.py", 50)
    get = builder.add_stack(builder.add_frame("get", "/srv/app.py", 10), run)
    work = builder.add_stack(builder.add_frame("work", "/srv/app.py", 20), run)
    builder.add_hold(lock, a, 0, 100, stack=work, waiters=2)
    builder.add_wait(lock, b, 40, 110, stack=get, holder=a)
    builder.add_wait(lock, c, 70, 110, stack=get, holder=a)
    return parse(builder.bytes())


def paths(node: FlameNode) -> dict[tuple[str, ...], int]:
    """Own time by the names from the root."""
    found = {(node.name,): node.self_ns} if node.self_ns else {}
    for child in node.children:
        found |= {(node.name, *path): ns for path, ns in paths(child).items()}
    return found


def by_thread(node: FlameNode) -> dict[int, int]:
    found = dict(node.by_thread)
    for child in node.children:
        for thread, ns in by_thread(child).items():
            found[thread] = found.get(thread, 0) + ns
    return found


def test_the_waiter_and_the_holder_meet_at_the_lock() -> None:
    root = flame(two_waiters(), "pair")

    assert paths(root) == {
        ("all", "run", "get", "l", "work", "run"): 90,
        ("all", "run", "get", "l", "(hand-off: no recorded hold)"): 20,
    }


def test_only_the_lock_is_one() -> None:
    (run,) = flame(two_waiters(), "pair").children
    (get,) = run.children
    (lock,) = get.children

    assert [node.is_lock for node in (run, get, lock, *lock.children)] == [
        False, False, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("victim", {2: 70, 3: 40}),
        ("pair", {2: 70, 3: 40}),
        ("culprit", {1: 90, 0: 20}),
        ("hold", {1: 100}),
    ],
)
def test_each_thread_has_its_part(view: View, expected: dict[int, int]) -> None:
    trace = two_waiters()

    root = flame(trace, view, by_thread=True)

    assert by_thread(root) == expected
    assert root.total_ns == flame(trace, view).total_ns == sum(expected.values())


def test_stacks_of_threads_are_one_unless_they_are_told_apart() -> None:
    trace = two_waiters()

    assert [stack.ns for stack in weighted_stacks(trace, "victim")] == [110]
    assert [(s.ns, s.thread) for s in weighted_stacks(trace, "victim", by_thread=True)] == [
        (70, 2),
        (40, 3),
    ]


def test_a_page_gets_the_parts_of_threads_also_of_frames_that_it_merges() -> None:
    root = flame(two_waiters(), "pair", by_thread=True)
    threads = ThreadTable()

    whole = flatten(root, "pair", FrameTable(), 100, threads)
    cut = flatten(root, "pair", FrameTable(), 4, threads)

    assert whole["whose"]
    assert cut["whose"]
    assert cut["merged"] > 0
    assert set(threads.number) == {2, 3}
    assert "whose" not in flatten(root, "pair", FrameTable(), 100)


def test_code_below_the_lock_is_told_apart() -> None:
    frames = FrameTable()

    flatten(flame(two_waiters(), "pair"), "pair", frames, 100)

    assert [(title, kind) for title, _, _, kind in frames.rows] == [
        ("all", "code"),
        ("run", "code"),
        ("get", "code"),
        ("l", "lock"),
        ("work", "culprit"),
        ("run", "culprit"),
        ("(hand-off: no recorded hold)", "culprit"),
    ]
