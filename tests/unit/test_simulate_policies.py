"""What tells one lock policy from another, beside its speed: the shapes that people choose by."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contention_lab.simulate import POLICIES, LockCosts, LockPolicy, Machine, Program, simulate
from contention_lab.simulate.lock_policy import NO_COSTS
from contention_lab.simulate.packing import EndReason, Order
from contention_lab.simulate.policies import Sharing, semaphore
from contention_lab.simulate.program import (
    FINISH,
    acquire,
    call,
    compute,
    post,
    release,
    serve,
    sleep,
)
from contention_lab.simulate.textbook import ClosedSystem

if TYPE_CHECKING:
    from contention_lab.simulate.engine import Engine
    from contention_lab.simulate.outcome import Outcome

TWO_CORES = Machine(2, slice_ns=1.4e6)


def system(kind: str, machine: Machine, sharing: Sharing | None = None) -> ClosedSystem:
    policy = POLICIES[kind]
    return ClosedSystem(
        policy, policy.defaults, machine, 200.0, 1000.0, 0.2, 0.2, sharing or Sharing()
    )


def rate(kind: str, threads: int, machine: Machine = TWO_CORES) -> float:
    return system(kind, machine).simulated(threads).throughput_per_s


def test_with_more_threads_than_cores_queues_of_spinners_lose_by_far() -> None:
    parking, spinning, ticket, mcs = (
        rate(kind, 8) for kind in ("parking", "test-and-set", "ticket", "mcs")
    )

    assert parking > spinning > 10 * max(ticket, mcs)


def test_sleeping_waiters_keep_their_pace_with_more_threads_than_cores() -> None:
    for kind in ("parking", "adaptive"):
        assert rate(kind, 16) > 0.9 * rate(kind, 4)


def test_test_and_set_collapses_with_every_thread_more_than_cores() -> None:
    rates = [rate("test-and-set", threads) for threads in (2, 4, 8, 16)]

    assert all(later < earlier for earlier, later in pairwise(rates))


def test_a_hand_off_that_reaches_all_spinners_makes_more_threads_slower() -> None:
    many = Machine(64)

    assert rate("ticket", 48, many) < 0.7 * rate("ticket", 8, many)
    assert rate("mcs", 48, many) > 0.8 * rate("mcs", 8, many)


def test_back_off_helps_where_hand_offs_grow() -> None:
    many = Machine(64)

    assert rate("back-off", 48, many) > rate("test-and-set", 48, many)


def test_first_come_first_served_is_fair_and_barging_is_not() -> None:
    shares = {}
    for kind in ("mcs", "parking"):
        found = system(kind, Machine(16)).simulated(16)
        finished = found.threads["finished"].astype(float)
        shares[kind] = finished.std() / finished.mean()

    assert shares["mcs"] < 0.01
    assert shares["parking"] > shares["mcs"]


def test_adaptive_spinners_sleep_once_the_holder_has_lost_its_core() -> None:
    adaptive, spinning = (
        system(kind, TWO_CORES).simulated(8) for kind in ("adaptive", "test-and-set")
    )

    assert share_of_spinning(adaptive) < 0.05
    assert share_of_spinning(spinning) > 0.3


def share_of_spinning(found: Outcome) -> float:
    return float(found.threads["spin_ns"].sum()) / (2 * found.measured_ns)


def test_readers_share_and_writers_exclude() -> None:
    def program(reads: tuple[bool, ...]) -> float:
        one = Program()
        lock = one.add_lock(LockPolicy(Order.PHASE_FAIR, NO_COSTS, spin_ns=math.inf))
        for read in reads:
            steps = [acquire(lock, read), compute(1000.0), release(lock, read)]
            one.add_thread(one.add_queue([steps]))
        return simulate(one.tables(Machine.ideal(4))).elapsed_ns

    assert program((True, True, True)) == 1000.0
    assert program((False, False, False)) == 3000.0
    assert program((True, False, True)) == 3000.0  # the reader behind a waiting writer waits


def test_waiting_readers_go_together_after_a_writer() -> None:
    one = Program()
    lock = one.add_lock(LockPolicy(Order.PHASE_FAIR, NO_COSTS, spin_ns=math.inf))
    write = [acquire(lock), compute(1000.0), release(lock)]
    read = [compute(10.0), acquire(lock, True), compute(1000.0), release(lock, True)]
    for steps in (write, read, [compute(20.0), *write], [compute(15.0), *read], read):
        one.add_thread(one.add_queue([steps]))

    found = simulate(one.tables(Machine.ideal(8)))

    assert found.threads["end_ns"].tolist() == [1000.0, 2000.0, 3000.0, 2000.0, 2000.0]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("permits", [1, 2, 3, 6])
def test_as_many_threads_at_a_time_as_there_are_permits(engine: Engine, permits: int) -> None:
    program = Program()
    lock = program.add_lock(semaphore.lock(NO_COSTS, permits))
    for _ in range(6):
        work = [acquire(lock), sleep(900.0), release(lock)] * 10
        program.add_thread(program.add_queue([work]))
    found = simulate(program.tables(Machine.ideal(8)), engine=engine)

    assert found.elapsed_ns == pytest.approx(6 * 10 * 900.0 / permits, rel=0.01)
    assert found.utilisation(lock) == pytest.approx(1.0, abs=0.02)


def test_a_permit_in_reserve_leaves_a_semaphore_free() -> None:
    program = Program()
    lock = program.add_lock(semaphore.lock(NO_COSTS, 3))
    for _ in range(2):
        work = [acquire(lock), sleep(900.0), release(lock)] * 10
        program.add_thread(program.add_queue([work]))
    found = simulate(program.tables(Machine.ideal(8)))

    assert found.utilisation(lock) == 0.0
    assert found.locks["contended"][lock] == 0


def test_sharding_and_objects_of_ones_own_lift_the_ceiling() -> None:
    many = Machine(16)
    one = rate("parking", 16, many)

    assert rate("sharded", 16, many) > 2 * one
    own = system("per-object", many, Sharing(shards=16)).simulated(16)
    assert own.throughput_per_s == pytest.approx(16 / (1200.0 + 20.0) * 1e9, rel=0.03)
    assert int(own.locks["contended"].sum()) == 0


def test_shards_are_drawn_in_the_shares_asked_for() -> None:
    policy = POLICIES["sharded"]
    wanted = Sharing(shards=5, first_share=0.6)
    found = ClosedSystem(policy, NO_COSTS, Machine(8), 10.0, 1000.0, sharing=wanted).simulated(4)
    acquires = found.locks["acquires"].astype(float)

    shares = acquires / acquires.sum()

    assert shares.tolist() == pytest.approx([0.6, 0.1, 0.1, 0.1, 0.1], abs=0.02)


def test_a_channel_has_one_server_however_many_callers() -> None:
    policy = POLICIES["channel"]
    busy = ClosedSystem(policy, NO_COSTS, Machine.ideal(64), 200.0, 1000.0, 1.0, 1.0)

    found = busy.simulated(40)

    assert found.throughput_per_s == pytest.approx(5e6, rel=0.02)
    assert found.utilisation(0) == pytest.approx(1.0, abs=0.01)


def test_who_posts_does_not_wait_for_the_server() -> None:
    def end(step: object) -> float:
        one = Program()
        channel = one.add_lock(POLICIES["channel"].lock(NO_COSTS))
        one.add_thread(one.add_queue([[serve(channel)]], endless=True))
        sender = one.add_thread(one.add_queue([[step, step, FINISH]]))  # type: ignore[list-item]
        found = simulate(one.tables(Machine.ideal(2)))
        assert found.reason == EndReason.DONE
        return float(found.threads["end_ns"][sender])

    assert end(call(0, 500.0)) == 1000.0
    assert end(post(0, 500.0)) == 0.0


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_what_a_server_does_after_the_work_comes_before_its_reply(engine: Engine) -> None:
    one = Program()
    channel = one.add_lock(POLICIES["channel"].lock(NO_COSTS))
    one.add_thread(one.add_queue([[serve(channel), compute(40.0)]], endless=True))
    sender = one.add_thread(one.add_queue([[call(channel, 500.0)] * 3]))

    found = simulate(one.tables(Machine.ideal(2)), engine)

    assert found.threads["end_ns"][sender] == 3 * 540.0


def gil_program(threads: int, python_ns: float, native_ns: float, gil: bool = True) -> Program:
    """Threads that each run Python code, then native code without the GIL, a hundred times."""
    one = Program()
    if gil:
        one.add_gil(POLICIES["gil"].lock(NO_COSTS))
    steps = [compute(python_ns, gil=True), compute(native_ns), FINISH]
    for _ in range(threads):
        one.add_thread(one.add_queue([steps * 100]))
    return one


def test_python_code_of_all_threads_takes_turns_under_the_gil() -> None:
    machine = Machine.ideal(8)
    with_gil = simulate(gil_program(4, 10_000.0, 0.0).tables(machine))
    without = simulate(gil_program(4, 10_000.0, 0.0, gil=False).tables(machine))

    assert with_gil.elapsed_ns == pytest.approx(4 * without.elapsed_ns)
    assert float(with_gil.threads["gil_ns"].sum()) > 0


def test_python_code_after_native_code_is_a_closed_system_with_one_lock() -> None:
    found = system("gil", Machine.ideal(16)).with_costs(NO_COSTS).simulated(16)

    assert found.throughput_per_s == pytest.approx(5e6, rel=0.01)
    assert found.utilisation(0) == pytest.approx(1.0, abs=0.01)
    assert found.response_ns == pytest.approx(16 * 200.0 - 1000.0, rel=0.02)


def test_native_code_overlaps_with_python_code() -> None:
    machine = Machine.ideal(8)

    found = simulate(gil_program(4, 10_000.0, 90_000.0).tables(machine))

    assert found.elapsed_ns < 1.1 * 100 * 100_000.0


def test_the_gil_is_handed_over_after_the_switch_interval() -> None:
    one = Program()
    one.add_gil(POLICIES["gil"].lock(NO_COSTS))
    one.add_thread(one.add_queue([[compute(60e6, gil=True)]]))
    short = one.add_thread(one.add_queue([[compute(1_000.0), compute(1_000.0, gil=True)]]))

    found = simulate(one.tables(Machine.ideal(2)))

    assert float(found.threads["end_ns"][short]) == pytest.approx(5e6, rel=0.01)
    assert found.elapsed_ns == pytest.approx(60e6, rel=0.01)


def test_a_lock_holder_that_waits_for_the_gil_makes_others_wait_for_the_lock() -> None:
    one = Program()
    one.add_gil(POLICIES["gil"].lock(NO_COSTS))
    lock = one.add_lock(POLICIES["parking"].lock(NO_COSTS))
    one.add_thread(one.add_queue([[compute(20e6, gil=True)]]))
    hold = [sleep(1_000.0), acquire(lock), compute(1_000.0, gil=True), release(lock)]
    one.add_thread(one.add_queue([hold]))
    waiter = one.add_thread(one.add_queue([[sleep(2_000.0), acquire(lock), release(lock)]]))

    found = simulate(one.tables(Machine.ideal(4)))

    assert float(found.threads["wait_ns"][waiter]) == pytest.approx(5e6, rel=0.01)


@pytest.mark.parametrize("gil_first", [False, True])
def test_a_lock_tried_after_the_gil_is_not_held_while_waiting_for_it(gil_first: bool) -> None:
    one = Program()
    one.add_gil(POLICIES["gil"].lock(NO_COSTS))
    spin = LockPolicy(Order.COMPETITIVE, NO_COSTS, spin_ns=math.inf, gil_first=gil_first)
    lock = one.add_lock(spin)
    python = compute(4e6, gil=True)
    one.add_thread(one.add_queue([[acquire(lock), compute(2_000.0), release(lock), python]]))
    one.add_thread(
        one.add_queue([[compute(500.0), acquire(lock), compute(1_000.0, gil=True), release(lock)]])
    )

    found = simulate(one.tables(Machine.ideal(4)))

    held_ns = float(found.locks["busy_ns"][lock])
    assert held_ns == pytest.approx(3_000.0 if gil_first else 4e6 + 3_000.0, rel=0.01)


def test_a_thread_that_sleeps_leaves_its_core_to_others() -> None:
    one = Program()
    for _ in range(4):
        one.add_thread(one.add_queue([[sleep(1e6), compute(1_000.0)]]))

    found = simulate(one.tables(Machine.ideal(1)))

    assert found.elapsed_ns == pytest.approx(1e6 + 4 * 1_000.0)


def test_threads_on_one_core_take_slices_in_turn() -> None:
    one = Program()
    for _ in range(2):
        one.add_thread(one.add_queue([[compute(10e6)]]))

    found = simulate(one.tables(Machine(1, slice_ns=1e6, switch_ns=0.0)))

    assert found.threads["end_ns"].tolist() == pytest.approx([19e6, 20e6])
    assert found.preemptions == 18


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_thread_goes_on_with_the_rest_of_its_slice_after_a_short_sleep(engine: Engine) -> None:
    one = Program()
    one.add_thread(one.add_queue([[compute(0.6e6), sleep(1.0), compute(9e6)]]))
    other = one.add_thread(one.add_queue([[compute(5e6)]]))
    machine = Machine(1, slice_ns=1e6, switch_ns=0.0, wake_same_ns=0.0, wake_other_ns=0.0)

    found = simulate(one.tables(machine), engine)

    # 0.6 ms and, after one slice of the other, 0.4 ms; with a new slice it would end at 9.6 ms.
    assert float(found.threads["end_ns"][other]) == pytest.approx(9e6, rel=0.01)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_woken_thread_that_is_owed_takes_a_core_after_the_protected_time(engine: Engine) -> None:
    def ended(protected_ns: float) -> float:
        one = Program()
        for _ in range(2):
            one.add_thread(one.add_queue([[compute(20e6)]]))
        # Owed when it goes to sleep, for the other two had a slice each before.
        woken = one.add_thread(one.add_queue([[compute(0.1e6), sleep(1e6), compute(0.1e6)]]))
        machine = Machine(1, 4e6, 0.0, 0.0, 0.0, 0.0, preempt_after_ns=protected_ns)
        return float(simulate(one.tables(machine), engine).threads["end_ns"][woken])

    at_once, later, in_turn = ended(0.0), ended(2e6), ended(math.inf)

    assert at_once == pytest.approx(9.2e6, rel=0.01)
    assert at_once <= later <= in_turn
    assert in_turn == pytest.approx(12.2e6, rel=0.01)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_waiter_for_the_gil_looks_for_itself_after_each_interval(engine: Engine) -> None:
    one = Program()
    one.add_gil(POLICIES["gil"].lock(NO_COSTS))
    for _ in range(3):
        one.add_thread(one.add_queue([[compute(12e6, gil=True)]]))

    found = simulate(one.tables(Machine.ideal(3)), engine)

    assert found.elapsed_ns == pytest.approx(36e6)
    assert found.locks["acquires"].tolist() == [pytest.approx(8, abs=2)]


def test_a_queue_that_threads_share_is_taken_in_order_until_it_is_empty() -> None:
    one = Program()
    queue = one.add_queue([[compute(5e3), FINISH], *([[compute(1e3), FINISH]] * 5)])
    for _ in range(2):
        one.add_thread(queue)

    found = simulate(one.tables(Machine.ideal(2)))

    assert found.threads["finished"].tolist() == [1, 5]
    assert found.elapsed_ns == 5e3


def test_response_times_are_counted_from_asking_to_being_done() -> None:
    one = Program()
    lock = one.add_lock(POLICIES["mcs"].lock(NO_COSTS))
    steps = [acquire(lock), compute(1000.0), release(lock), FINISH]
    for _ in range(4):
        one.add_thread(one.add_queue([steps]))

    found = simulate(one.tables(Machine.ideal(4)))

    assert found.response_ns == pytest.approx(2500.0)
    assert found.response_quantile_ns(1.0) == pytest.approx(4000.0, rel=0.04)
    assert found.locks["longest_wait_ns"].tolist() == [3000.0]
    assert found.contended_share(lock) == 0.75
    assert np.sum(found.responses) == 4


@pytest.mark.parametrize("kind", POLICIES)
def test_costs_make_every_policy_slower(kind: str) -> None:
    policy = POLICIES[kind]
    machine = Machine.ideal(4)  # where going to sleep slowly never saves a wake-up
    dear = LockCosts(acquire_ns=400.0, handoff_ns=((1.0, 400.0),))
    cheap, costly = (
        ClosedSystem(policy, costs, machine, 200.0, 1000.0, 0.2, 0.2).simulated(2)
        for costs in (NO_COSTS, dear)
    )

    assert costly.throughput_per_s < cheap.throughput_per_s


def test_what_takes_no_time_or_less_is_refused() -> None:
    policy = POLICIES["mcs"]
    for never in (math.inf, math.nan):
        with pytest.raises(ValueError, match="finite"):
            ClosedSystem(policy, NO_COSTS, TWO_CORES, never, 1.0)
    with pytest.raises(ValueError, match="take some time"):
        ClosedSystem(policy, NO_COSTS, Machine(1), 0.0, 0.0)
    with pytest.raises(ValueError, match="not negative"):
        ClosedSystem(policy, NO_COSTS, Machine(1), -1.0, 5.0)
    with pytest.raises(ValueError, match="at least one"):
        Machine(0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        compute(5.0, spread=1.5)
    with pytest.raises(ValueError, match="after the warm-up"):
        Program().tables(Machine(1), end_ns=1.0, warmup_ns=2.0)
