"""Flame trees of hand-made traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.analysis import blame, flame
from contention_lab.trace import TraceBuilder, parse

if TYPE_CHECKING:
    from contention_lab.analysis import FlameNode


def case() -> TraceBuilder:
    builder = TraceBuilder()
    main = builder.add_frame("main", "/src/app.py", 90, first_line=80)
    register = builder.add_frame("register", "/src/client.py", 20, first_line=18)
    register_later = builder.add_frame("register", "/src/client.py", 24, first_line=18)
    backward = builder.add_frame("backward", "/src/client.py", 40, first_line=35)
    first, second = builder.add_stack(register, main), builder.add_stack(register_later, main)
    culprit = builder.add_stack(backward, main)
    made = builder.add_frame("make", "/src/server.py", 31, first_line=30)
    lock = builder.add_lock("SpinLock", name="server", site=made)
    a, b = builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, a, 0, 100, site=backward, stack=culprit)
    builder.add_short_hold(lock, b, 101, 7, site=register)
    builder.add_wait(lock, b, 10, 101, stack=first, spin_ns=60)
    builder.add_wait(lock, b, 20, 60, stack=second, spin_ns=40)
    builder.add_wait(lock, a, 200, 203, holder=b, holder_site=register)
    return builder


def plain(node: FlameNode) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": node.name, "ns": node.total_ns}
    if node.children:
        tree["children"] = [plain(child) for child in node.children]
    return tree


def test_victims_end_in_the_lock_they_waited_for() -> None:
    tree = flame(parse(case().bytes()), "victim")

    assert plain(tree) == {
        "name": "all",
        "ns": 134,
        "children": [
            {
                "name": "main",
                "ns": 131,
                "children": [
                    {"name": "register", "ns": 131, "children": [{"name": "server", "ns": 131}]}
                ],
            },
            {"name": "server", "ns": 3},
        ],
    }
    (main, lock) = tree.children
    assert (main.file, main.line, main.self_ns) == ("/src/app.py", 90, 0)
    assert main.children[0].line == 18  # two lines of one function: where it starts
    assert (lock.file, lock.line, lock.self_ns) == ("/src/server.py", 31, 3)


def test_culprits_start_with_the_lock_and_say_what_is_not_known() -> None:
    trace = parse(case().bytes())
    expected = {
        "name": "all",
        "ns": 134,
        "children": [
            {
                "name": "server",
                "ns": 134,
                "children": [
                    {"name": "main", "ns": 130, "children": [{"name": "backward", "ns": 130}]},
                    {
                        "name": "register",
                        "ns": 3,
                        "children": [{"name": "(hold not recorded)", "ns": 3}],
                    },
                    {"name": "(hand-off: no recorded hold)", "ns": 1},
                ],
            }
        ],
    }

    assert plain(flame(trace, "culprit")) == expected
    assert plain(flame(trace, "culprit", blame(trace))) == expected


def test_what_the_holder_executed_is_preferred_to_its_release() -> None:
    builder = TraceBuilder()
    backward = builder.add_frame("backward", "/src/client.py", 40)
    matmul = builder.add_frame("matmul", "/src/rules.py", 7)
    release, running = builder.add_stack(backward), builder.add_stack(matmul, backward)
    lock, a, b, c = builder.add_lock(), *(builder.add_thread() for _ in range(3))
    builder.add_hold(lock, a, 0, 100, site=backward, stack=release)
    builder.add_hold(lock, b, 100, 150, site=backward, stack=release)
    builder.add_wait(lock, c, 10, 150, holder=a, holder_stack=running)
    # Began during the second hold, and saw nothing of it; the first was seen by the other wait.
    builder.add_wait(lock, a, 120, 150, holder=b)
    tree = flame(parse(builder.bytes()), "culprit")

    ((_, (seen,)),) = [(lock.name, lock.children) for lock in tree.children]
    assert (seen.name, seen.total_ns, seen.self_ns) == ("backward", 170, 80)
    assert [(node.name, node.total_ns) for node in seen.children] == [("matmul", 90)]


def test_a_later_hold_is_shown_as_other_waits_saw_it() -> None:
    builder = TraceBuilder()
    backward = builder.add_frame("backward", "/src/client.py", 40)
    matmul = builder.add_frame("matmul", "/src/rules.py", 7)
    release, running = builder.add_stack(backward), builder.add_stack(matmul, backward)
    lock, a, b, c = builder.add_lock(), *(builder.add_thread() for _ in range(3))
    builder.add_hold(lock, a, 0, 100, site=backward, stack=release)
    builder.add_hold(lock, b, 100, 150, site=backward, stack=release)
    builder.add_wait(lock, c, 10, 150, holder=a)
    builder.add_wait(lock, a, 120, 150, holder=b, holder_stack=running)
    tree = flame(parse(builder.bytes()), "culprit")

    (seen,) = tree.children[0].children
    assert (seen.total_ns, seen.self_ns) == (170, 90)
    assert [(node.name, node.total_ns) for node in seen.children] == [("matmul", 80)]


def test_a_holder_that_waits_for_the_gil_has_a_leaf_of_its_own() -> None:
    builder = TraceBuilder()
    backward = builder.add_frame("backward", "/src/client.py", 40)
    lock, a, b = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, a, 100, 400, site=backward)
    builder.add_wait(lock, a, 100, 300, gil_ns=200)
    builder.add_wait(lock, b, 150, 400)
    tree = flame(parse(builder.bytes()), "culprit")

    (seen,) = tree.children[0].children
    assert (seen.name, seen.total_ns, seen.self_ns) == ("backward", 250, 100)
    assert [(node.name, node.total_ns) for node in seen.children] == [
        ("(waiting for the GIL)", 150)
    ]


def test_spinning_and_holding_have_trees_of_their_own() -> None:
    trace = parse(case().bytes())

    spin = flame(trace, "spin")
    assert (spin.total_ns, spin.children[0].name) == (100, "main")
    hold = flame(trace, "hold")
    assert plain(hold) == {
        "name": "all",
        "ns": 107,
        "children": [
            {
                "name": "main",
                "ns": 100,
                "children": [
                    {"name": "backward", "ns": 100, "children": [{"name": "server", "ns": 100}]}
                ],
            },
            {"name": "register", "ns": 7, "children": [{"name": "server", "ns": 7}]},
        ],
    }


def test_an_unknown_view_is_refused() -> None:
    view: Any = "victims"
    with pytest.raises(ValueError, match="choose victim, culprit, spin, hold, gil or"):
        flame(parse(case().bytes()), view)


def test_an_empty_trace_is_an_empty_tree() -> None:
    trace = parse(TraceBuilder().bytes())

    for view in ("victim", "culprit", "spin", "hold"):
        tree = flame(trace, view)
        assert (tree.total_ns, tree.children) == (0, ())


def test_very_deep_stacks_are_folded_at_the_outer_end() -> None:
    builder = TraceBuilder()
    frames = [builder.add_frame(f"f{i}", "deep.py", i) for i in range(3000)]
    lock = builder.add_lock()
    builder.add_wait(lock, builder.add_thread(), 0, 10, stack=builder.add_stack(*frames))
    node = flame(parse(builder.bytes()), "victim")

    names = []
    while node.children:
        (node,) = node.children
        names.append(node.name)
    assert names[0] == "(outer frames not recorded)"
    assert names[-2:] == ["f0", "lock #1"]
    assert len(names) == 402


def test_stacks_cut_by_the_recorder_say_so() -> None:
    builder = TraceBuilder()
    frame = builder.add_frame("f", "a.py", 1)
    stack = builder.add_stack(frame, truncated=True)
    builder.add_wait(builder.add_lock(), builder.add_thread(), 0, 10, stack=stack)
    tree = flame(parse(builder.bytes()), "victim")

    assert tree.children[0].name == "(outer frames not recorded)"
    assert tree.children[0].children[0].name == "f"
