"""Flame trees of more stacks than are wanted: sums stay right, the lightest lose their detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.analysis import flame
from contention_lab.trace import TraceBuilder, parse

if TYPE_CHECKING:
    from contention_lab.analysis import FlameNode
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace

STACKS = 6
WAIT_NS = 1000


def case() -> Trace:
    """Each of six places waits once for each of six, the longer the higher their numbers are."""
    builder = TraceBuilder()
    waiting = [builder.add_stack(builder.add_frame(f"wait_{i}", "/a.py", 1)) for i in range(STACKS)]
    holding = [builder.add_stack(builder.add_frame(f"hold_{i}", "/b.py", 1)) for i in range(STACKS)]
    lock, one, other = builder.add_lock(name="lock"), builder.add_thread(), builder.add_thread()
    moment = 0
    for i, waiter in enumerate(waiting):
        for j, holder in enumerate(holding):
            end = moment + WAIT_NS + 10 * (i * STACKS + j)
            builder.add_hold(lock, one, moment, end, stack=holder)
            builder.add_wait(lock, other, moment, end, stack=waiter)
            moment = end
    return parse(builder.bytes())


def leaves(tree: FlameNode) -> list[tuple[str, ...]]:
    if not tree.children:
        return [(tree.name,)]
    return [(tree.name, *below) for child in tree.children for below in leaves(child)]


def whose(tree: FlameNode) -> int:
    return len(tree.by_thread) + sum(whose(child) for child in tree.children)


def test_the_lightest_pairs_keep_who_waits_for_which_lock() -> None:
    trace = case()
    whole, some = flame(trace, "pair"), flame(trace, "pair", most=4)

    assert some.total_ns == whole.total_ns
    assert {child.name: child.total_ns for child in some.children} == {
        child.name: child.total_ns for child in whole.children
    }
    told = {path[1:] for path in leaves(some) if not path[-1].startswith("(code")}
    assert told == {("wait_5", "lock", f"hold_{j}") for j in range(2, STACKS)}
    assert len(leaves(whole)) == STACKS * STACKS


def test_as_many_pairs_as_are_wanted_stay_as_they_are() -> None:
    trace = case()

    assert flame(trace, "pair", most=STACKS * STACKS) == flame(trace, "pair")


@pytest.mark.parametrize("view", ["victim", "culprit", "pair", "hold"])
def test_threads_are_not_told_apart_where_that_makes_too_many(view: View) -> None:
    trace = case()
    with_threads = flame(trace, view, by_thread=True, most=STACKS * STACKS)
    without = flame(trace, view, by_thread=True, most=STACKS - 1)

    assert whose(with_threads) > 0
    assert whose(without) == 0
    assert without.total_ns == with_threads.total_ns
