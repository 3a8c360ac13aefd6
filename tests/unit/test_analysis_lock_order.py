"""Orders that contradict each other, and orders that only look like it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.analysis.lock_order import Inversion, inversions
from contention_lab.trace import TraceBuilder, parse


def program(locks: int = 4, threads: int = 3) -> TraceBuilder:
    builder = TraceBuilder()
    for number in range(locks):
        site = builder.add_frame("make", "program.py", number + 1)
        builder.add_lock("threading.Lock", site=site)
    for number in range(threads):
        builder.add_thread(f"thread {number}")
    return builder


def found(builder: TraceBuilder) -> tuple[Inversion, ...]:
    return inversions(parse(builder.bytes()))


def test_two_threads_with_opposite_orders_are_a_risk() -> None:
    builder = program()
    site, inner = builder.add_frame("f", "program.py", 20), builder.add_frame("g", "program.py", 21)
    builder.add_order(1, 2, {1: site}, stack=builder.add_stack(inner), time_ns=5)
    builder.add_order(2, 1, {2: 0}, time_ns=9, timeout=True)
    (inversion,) = found(builder)
    first, second = inversion.steps
    assert (first.held, first.taken, first.thread) == (1, 2, 1)
    assert (second.held, second.taken, second.thread) == (2, 1, 2)
    assert first.held_site is not None
    assert first.held_site.line == 20
    assert [frame.line for frame in first.stack] == [21]
    assert second.has_timeout


def test_one_order_is_no_risk() -> None:
    builder = program()
    for thread in (1, 2, 3):
        builder.add_order(thread, 2, {1: 0})
        builder.add_order(thread, 3, {1: 0, 2: 0})
    assert found(builder) == ()


def test_one_thread_alone_does_not_get_into_its_own_way() -> None:
    builder = program()
    builder.add_order(1, 2, {1: 0})
    builder.add_order(1, 1, {2: 0})
    assert found(builder) == ()


def test_another_thread_in_the_same_code_makes_it_a_risk() -> None:
    builder = program()
    builder.add_order(1, 2, {1: 0})
    builder.add_order(1, 1, {2: 0})
    builder.add_order(2, 2, {1: 0})
    assert len(found(builder)) == 1


def test_a_common_outer_lock_lets_only_one_order_happen_at_a_time() -> None:
    builder = program()
    builder.add_order(1, 2, {3: 0, 1: 0})
    builder.add_order(2, 1, {3: 0, 2: 0})
    assert found(builder) == ()


def test_without_the_outer_lock_once_it_is_a_risk() -> None:
    builder = program()
    builder.add_order(1, 2, {3: 0, 1: 0})
    builder.add_order(2, 1, {3: 0, 2: 0})
    builder.add_order(2, 1, {2: 0})
    assert len(found(builder)) == 1


def test_a_lock_that_others_release_is_a_signal_and_makes_no_ring() -> None:
    builder = program()
    builder.add_order(1, 2, {1: 0})
    builder.add_order(2, 1, {2: 0})
    builder.add_signal(2)
    trace = parse(builder.bytes())
    assert not trace.problems
    assert inversions(trace) == ()


def test_different_outer_locks_protect_nothing() -> None:
    builder = program()
    builder.add_order(1, 2, {3: 0, 1: 0})
    builder.add_order(2, 1, {4: 0, 2: 0})
    assert len(found(builder)) == 1


def test_objects_locked_in_the_order_of_their_numbers_are_no_risk() -> None:
    builder = TraceBuilder()
    site = builder.add_frame("Account.__init__", "bank.py", 3)
    locks = [builder.add_lock(site=site) for _ in range(6)]
    threads = [builder.add_thread() for _ in range(3)]
    for number, lock in enumerate(locks):
        for other in locks[number + 1 :]:
            builder.add_order(threads[(lock + other) % 3], other, {lock: 0})
    assert found(builder) == ()


def test_objects_of_one_place_locked_as_they_come_are_a_risk() -> None:
    builder = TraceBuilder()
    site = builder.add_frame("Account.__init__", "bank.py", 3)
    a, b, c, d = (builder.add_lock(site=site) for _ in range(4))
    one, two = builder.add_thread(), builder.add_thread()
    for pair in ((a, b), (b, c), (c, d)):
        builder.add_order(one, pair[1], {pair[0]: 0})
    for pair in ((b, a), (d, c)):
        builder.add_order(two, pair[1], {pair[0]: 0})
    assert len(found(builder)) == 1


def test_three_locks_in_a_ring_need_three_threads() -> None:
    steps = ((1, 2), (2, 3), (3, 1))
    two, three = program(), program()
    for thread, (held, taken) in zip((1, 2, 1), steps, strict=True):
        two.add_order(thread, taken, {held: 0})
    for thread, (held, taken) in zip((1, 2, 3), steps, strict=True):
        three.add_order(thread, taken, {held: 0})
    assert found(two) == ()
    (inversion,) = found(three)
    assert {(step.held, step.taken) for step in inversion.steps} == set(steps)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 3), st.integers(1, 4), st.sets(st.integers(1, 4), min_size=1, max_size=2)
        ),
        max_size=20,
    )
)
def test_every_inversion_is_a_ring_of_different_threads_and_guards(
    orders: list[tuple[int, int, set[int]]],
) -> None:
    builder = program()
    for thread, lock, held in orders:
        builder.add_order(thread, lock, dict.fromkeys(held - {lock}, 0))
    for inversion in found(builder):
        steps = inversion.steps
        assert len({step.thread for step in steps}) == len(steps) >= 2
        assert all(a.taken == b.held for a, b in pairwise((*steps, steps[0])))
        guards = [step.guards for step in steps]
        assert sum(map(len, guards)) == len(frozenset().union(*guards))
