"""The lock order of a page: its graph, the order of its locks, its rings, its picture."""

from __future__ import annotations

import re

from contention_lab.analysis.lock_graph import lock_graph
from contention_lab.report import trace_page
from contention_lab.report.lock_order_plot import lock_order_plots
from contention_lab.report.lock_order_view import MOST_LOCKS, LockOrderView, lock_order_view
from contention_lab.trace import Trace, TraceBuilder, parse

DIAGNOSIS = {"verdict": "lock-order-risk", "summary": "Two orders.", "findings": []}


def ordered(*pairs: tuple[str, str], threads: int = 1, sites: bool = False) -> Trace:
    """A trace in which, for each pair, another thread holds the first and takes the second.

    With one thread, all pairs are of the same one. With sites, every name is a place at which a
    new lock is made for each pair.
    """
    builder = TraceBuilder()
    ids = [builder.add_thread(f"worker-{i}") for i in range(threads)]
    locks: dict[str, int] = {}

    def lock(name: str) -> int:
        site = builder.add_frame(f"make_{name}", "/srv/app/locks.py", ord(name[0]))
        if sites:
            return builder.add_lock("Mutex", name=name, site=site)
        if name not in locks:
            locks[name] = builder.add_lock("Mutex", name=name, site=site)
        return locks[name]

    for number, (held, taken) in enumerate(pairs):
        stack = builder.add_stack(builder.add_frame(f"take_{taken}", "/srv/app/a.py", 40 + number))
        site = builder.add_frame(f"hold_{held}", "/srv/app/a.py", 10 + number)
        builder.add_order(
            ids[number % threads], lock(taken), {lock(held): site}, stack=stack, time_ns=number
        )
    return parse(builder.bytes())


def view_of(trace: Trace) -> LockOrderView:
    return lock_order_view(trace, lock_graph(trace))


def test_locks_of_one_place_are_one_node() -> None:
    graph = lock_graph(ordered(("a", "b"), ("a", "b"), threads=2, sites=True))

    assert [(node.lock.label, node.instances) for node in graph.nodes] == [("a", 2), ("b", 2)]
    (edge,) = graph.edges
    assert (edge.held, edge.taken, edge.threads, edge.in_ring) == (0, 1, 2, False)
    assert [(held.function, taken.line) for held, taken in edge.places if held and taken] == [
        ("hold_a", 40),
        ("hold_a", 41),
    ]


def test_a_ring_is_marked_and_told_step_by_step() -> None:
    view = view_of(ordered(("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), threads=4))

    (ring,) = view.rings
    assert {(step.held, step.taken) for step in ring} == {("a", "b"), ("b", "c"), ("c", "a")}
    assert [row.in_ring for row in view.orders] == [True, True, True, False]
    assert "1 ring in which threads can wait for each other for ever" in view.sentence


def test_contradictions_of_one_thread_are_no_ring() -> None:
    view = view_of(ordered(("a", "b"), ("b", "a"), threads=1))

    assert view.rings == ()
    assert not any(row.in_ring for row in view.orders)
    assert "none contradicts" in view.sentence


def test_every_lock_stands_below_those_it_is_taken_under() -> None:
    pairs = [("d", "e"), ("b", "d"), ("a", "c"), ("c", "d"), ("a", "b"), ("a", "e")]

    view = view_of(ordered(*pairs))

    place = {node.title: at for at, node in enumerate(view.nodes)}
    assert all(place[held] < place[taken] for held, taken in pairs)
    assert all(row.held < row.taken for row in view.orders)


def test_locks_of_a_ring_are_shown_before_the_many_others() -> None:
    pairs = [("a", f"x{i}") for i in range(30)] + [("y", "z"), ("z", "y")]

    view = view_of(ordered(*pairs, threads=32))

    titles = [node.title for node in view.nodes]
    assert len(titles) == MOST_LOCKS
    assert {"y", "z"} <= set(titles)
    assert view.locks_left_out == 33 - MOST_LOCKS


def test_the_picture_leads_back_up_only_where_orders_contradict() -> None:
    plain = lock_order_plots(view_of(ordered(("a", "b"))), "p")
    ring = lock_order_plots(view_of(ordered(("a", "b"), ("b", "a"), threads=2)), "r")

    assert plain is not None
    assert ring is not None
    assert len(re.findall('class="s-faint"', str(plain.wide))) == 1
    assert "s-spin" not in str(plain.wide)
    assert len(re.findall('class="s-spin"', str(ring.wide))) == 2
    assert "1 ring" in str(ring.narrow)


def test_without_orders_there_is_no_picture_and_the_page_says_so() -> None:
    trace = parse(TraceBuilder().bytes())

    assert lock_order_plots(view_of(trace), "p") is None
    assert "No thread took a lock while it held another one." in trace_page([trace], [DIAGNOSIS])


def test_hostile_names_stay_text_in_the_picture() -> None:
    page = trace_page([ordered(("<img src=x onerror=alert(1)>", "b"))], [DIAGNOSIS])

    assert "<img" not in page
    assert "&lt;img" in page
