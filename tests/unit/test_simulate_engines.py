"""The engine in C and the reference in Python handle the same events in the same order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.simulate.engine import NATIVE, results_of
from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.packing import EndReason, Op, OpFlag, Order, SpinEnd, Tables
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.program import FINISH, Program, Step, acquire, compute, release, sleep
from contention_lab.simulate.textbook import ClosedSystem

pytestmark = pytest.mark.skipif(not NATIVE, reason="the extension was not built")

KEEP = 4000
SMALL = Machine(2, slice_ns=20_000.0, tick_ns=4_000.0)
EAGER = replace(SMALL, preempt_after_ns=5_000.0, gil_interval_ns=15_000.0)


def assert_same(tables: Tables) -> EndReason:
    native = results_of(tables, "native", KEEP)
    reference = results_of(tables, "reference", KEEP)

    assert native.totals.tolist() == reference.totals.tolist()
    assert native.events.tolist() == reference.events.tolist()
    assert native.locks.tolist() == reference.locks.tolist()
    assert native.threads.tolist() == reference.threads.tolist()
    assert native.responses.tolist() == reference.responses.tolist()
    return EndReason(int(native.totals["reason"][0]))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("machine", [SMALL, EAGER, Machine(8)])
def test_every_policy_is_simulated_alike(kind: str, threads: int, machine: Machine) -> None:
    policy = POLICIES[kind]
    costs = replace(policy.defaults, spin_ns=800.0)
    system = ClosedSystem(policy, costs, machine, 200.0, 1000.0, 0.5, 1.0)
    tables = system.program(threads).tables(machine, warmup_ns=2e4, end_ns=4e5, seed=7)

    assert assert_same(tables) == EndReason.TIME


STEPS = st.one_of(
    st.builds(
        Step,
        st.sampled_from([Op.COMPUTE]),
        st.sampled_from([OpFlag.NONE, OpFlag.GIL]),
        st.sampled_from([0, 300, 1000]),
        st.just(0),
        st.sampled_from([0.0, 50.0, 900.0, 30_000.0]),
    ),
    st.builds(sleep, st.sampled_from([100.0, 9_000.0]), st.sampled_from([0.0, 1.0])),
    st.just(FINISH),
)
LOCKED = st.builds(
    lambda lock, body, read: [acquire(lock, read), *body, release(lock, read)],
    st.sampled_from([1, 2, 3, 4, 6]),
    st.lists(STEPS, max_size=3),
    st.just(False),
)
READ = st.builds(
    lambda body, read: [acquire(5, read), *body, release(5, read)],
    st.lists(STEPS, max_size=3),
    st.booleans(),
)
PIECES = st.lists(st.one_of(st.lists(STEPS, max_size=2), LOCKED, READ), min_size=1, max_size=5)

COSTS = LockCosts(handoff_ns=((1.0, 80.0), (4.0, 300.0)), spin_ns=700.0, wake_extra_ns=50.0)
LOCKS = [
    LockPolicy(Order.COMPETITIVE, COSTS, spin_ns=math.inf, gil_first=True),
    LockPolicy(Order.FIFO, COSTS, spin_ns=2_000.0, spin_end=SpinEnd.YIELD),
    LockPolicy(Order.COMPETITIVE, COSTS, spin_ns=700.0, adaptive=True),
    LockPolicy(Order.COMPETITIVE, COSTS, backoff_ns=(40.0, 900.0), gil_first=True),
    LockPolicy(Order.PHASE_FAIR, COSTS, spin_ns=500.0),
    LockPolicy(Order.COMPETITIVE, COSTS, spin_ns=300.0, wakes_at_once=9, permits=2),
]


@settings(max_examples=60, deadline=None)
@given(
    work=st.lists(PIECES, min_size=1, max_size=6),
    machine=st.sampled_from([SMALL, EAGER, Machine(1, slice_ns=10_000.0), Machine.ideal(3)]),
    seed=st.integers(0, 2**63),
    with_gil=st.booleans(),
    shared=st.booleans(),
)
def test_any_program_is_simulated_alike(
    work: list[list[list[Step]]], machine: Machine, seed: int, with_gil: bool, shared: bool
) -> None:
    program = Program()
    gil = POLICIES["gil"].lock(POLICIES["gil"].defaults)
    if with_gil:
        program.add_gil(gil)
    else:
        program.add_lock(gil)
    for policy in LOCKS:
        program.add_lock(policy)
    if shared:
        queue = program.add_queue([step for piece in work for step in piece])
        for _ in work:
            program.add_thread(queue)
    else:
        for piece in work:
            program.add_thread(program.add_queue(piece * 3))

    reason = assert_same(program.tables(machine, end_ns=1e7, seed=seed, events_limit=20_000))

    assert reason in (EndReason.DONE, EndReason.TIME, EndReason.LIMIT)


def test_a_deadlock_ends_the_simulation() -> None:
    program = Program()
    first = program.add_lock(POLICIES["parking"].lock(LockCosts()), 2)
    for one, other in ((first, first + 1), (first + 1, first)):
        steps = [acquire(one), compute(100.0), acquire(other), release(other), release(one)]
        program.add_thread(program.add_queue([steps]))

    assert assert_same(program.tables(Machine(2))) == EndReason.STUCK


def test_a_program_that_takes_no_time_ends_at_the_limit() -> None:
    program = Program()
    program.add_thread(program.add_queue([[FINISH]], endless=True))

    results = results_of(program.tables(Machine(1), end_ns=1e6), "native")

    assert EndReason(int(results.totals["reason"][0])) == EndReason.LIMIT


@pytest.mark.parametrize(
    ("table", "field", "value", "complaint"),
    [
        ("ops", "target", 99, "lock is out of range"),
        ("ops", "ns", -1.0, "takes less than no time"),
        ("ops", "ns", math.nan, "takes less than no time"),
        ("ops", "code", 200, "unknown"),
        ("items", "stop", 99, "item is out of range"),
        ("queues", "last", 99, "queue is out of range"),
        ("locks", "costs", -1, "costs are out of range"),
        ("locks", "order", 9, "order is unknown"),
        ("locks", "gil_first", 1, "tried after the GIL"),
        ("machine", "cores", 0, "cores is out of range"),
        ("machine", "gil", 9, "GIL is no lock"),
    ],
)
def test_tables_that_contradict_themselves_are_refused(
    table: str, field: str, value: float, complaint: str
) -> None:
    program = Program()
    program.add_lock(POLICIES["mcs"].lock(LockCosts()))
    program.add_thread(program.add_queue([[acquire(0), compute(5.0), release(0)]]))
    tables = program.tables(Machine(1))
    getattr(tables, table)[field][0] = value

    with pytest.raises(ValueError, match=complaint):
        results_of(tables, "native")


def test_the_seed_decides_everything() -> None:
    policy = POLICIES["test-and-set"]
    system = ClosedSystem(policy, policy.defaults, Machine(4), 200.0, 500.0, 1.0, 1.0)

    once, again, other = (
        results_of(system.program(4).tables(Machine(4), end_ns=1e5, seed=seed), keep_events=KEEP)
        for seed in (1, 1, 2)
    )

    assert np.array_equal(once.events, again.events)
    assert not np.array_equal(once.events, other.events)
