"""The simulator against theory: exact where theory is exact, never above its bounds."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from contention_lab.simulate.bounds import ceiling, mean_values
from contention_lab.simulate.bounds.mva import state_dependent
from contention_lab.simulate.lock_policy import NO_COSTS, LockCosts
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES, Sharing
from contention_lab.simulate.textbook import ClosedSystem

if TYPE_CHECKING:
    from contention_lab.simulate.outcome import Outcome

COUNTS = (1, 2, 4, 8, 16, 32)


def simulated(kind: str, threads: int, costs: LockCosts, spread: float) -> Outcome:
    """Simulate holds of 200 ns and thinks of 1000 ns with a core for every thread."""
    machine = Machine.ideal(max(COUNTS))
    system = ClosedSystem(POLICIES[kind], costs, machine, 200.0, 1000.0, spread, spread)
    return system.simulated(threads, operations=60_000)


@pytest.mark.parametrize("threads", COUNTS)
@pytest.mark.parametrize("kind", ["ticket", "mcs", "test-and-set", "parking"])
def test_exponential_times_agree_with_mean_value_analysis(kind: str, threads: int) -> None:
    exact = mean_values(threads, 1000.0, 200.0)

    found = simulated(kind, threads, NO_COSTS, 1.0)

    assert found.throughput_per_s == pytest.approx(exact.throughput_per_s, rel=0.02)
    assert found.response_ns == pytest.approx(exact.response_ns, rel=0.06)
    assert found.utilisation(0) == pytest.approx(exact.utilisation, rel=0.02)


@pytest.mark.parametrize("threads", COUNTS)
def test_a_hand_off_that_grows_agrees_with_the_chain(threads: int) -> None:
    per_waiter = 25.0
    costs = LockCosts(
        acquire_ns=0.0,
        release_ns=0.0,
        transfer_ns=0.0,
        handoff_ns=((0.0, 0.0), (64.0, 64 * per_waiter)),
    )
    exact = state_dependent(threads, 1000.0, lambda k: 200.0 + per_waiter * (k - 1))

    found = simulated("ticket", threads, costs, 1.0)

    # The chain lets a service slow down while it lasts, the lock fixes its cost at the release.
    assert found.throughput_per_s == pytest.approx(exact.throughput_per_s, rel=0.03)


@pytest.mark.parametrize("threads", COUNTS)
@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", ["ticket", "test-and-set", "parking", "adaptive"])
def test_no_lock_beats_the_asymptotic_bound(kind: str, spread: float, threads: int) -> None:
    bound = ceiling(threads, 1000.0, 200.0, cores=32)

    found = simulated(kind, threads, NO_COSTS, spread)

    assert found.throughput_per_s <= bound.throughput_per_s * 1.02


def test_constant_times_lie_between_the_mean_values_and_the_bound() -> None:
    for threads in COUNTS:
        found = simulated("mcs", threads, NO_COSTS, 0.0).throughput_per_s

        assert found >= mean_values(threads, 1000.0, 200.0).throughput_per_s * 0.999
        assert found <= ceiling(threads, 1000.0, 200.0).throughput_per_s * 1.001


def test_the_chain_with_a_constant_demand_is_mean_value_analysis() -> None:
    for threads in (1, 5, 40, 256):
        chain = state_dependent(threads, 900.0, lambda _: 150.0)
        exact = mean_values(threads, 900.0, 150.0)

        assert chain.throughput_per_s == pytest.approx(exact.throughput_per_s, rel=1e-9)
        assert chain.queue == pytest.approx(exact.queue, rel=1e-9)
        assert chain.utilisation == pytest.approx(exact.utilisation, rel=1e-9)


def test_mean_values_keep_littles_law() -> None:
    for threads in COUNTS:
        means = mean_values(threads, 1000.0, 200.0)
        cycle_ns = 1000.0 + means.response_ns

        assert means.throughput_per_s * cycle_ns * 1e-9 == pytest.approx(threads)


def test_the_bound_says_what_limits() -> None:
    assert ceiling(2, 1000.0, 200.0, cores=8).limited_by == "threads"
    assert ceiling(20, 1000.0, 200.0, cores=8).limited_by == "lock"
    assert ceiling(20, 1000.0, 200.0, cores=2).limited_by == "cores"
    assert ceiling(20, 1000.0, 200.0).knee_threads == pytest.approx(6.0)
    assert ceiling(20, 1000.0, 0.0).knee_threads == float("inf")


def test_sharding_is_bounded_by_the_most_used_part() -> None:
    machine = Machine.ideal(64)
    for share in (0.125, 0.5):
        system = ClosedSystem(
            POLICIES["sharded"],
            NO_COSTS,
            machine,
            hold_ns=200.0,
            think_ns=0.0,
            hold_spread=1.0,
            sharing=Sharing(shards=8, first_share=share),
        )
        bound = ceiling(64, 0.0, 200.0, busiest_share=share)

        found = system.simulated(64, operations=60_000).throughput_per_s

        assert found <= bound.throughput_per_s * 1.02
        assert found >= bound.throughput_per_s * 0.75


def test_throughput_with_more_threads_than_cores_is_that_of_the_cores() -> None:
    machine = Machine.ideal(4)
    system = ClosedSystem(POLICIES["per-object"], NO_COSTS, machine, 0.0, 1000.0)

    rates = [system.simulated(threads).throughput_per_s for threads in (1, 2, 4, 8, 16)]

    assert rates == pytest.approx([1e6, 2e6, 4e6, 4e6, 4e6], rel=0.02)
    assert all(later >= earlier * 0.98 for earlier, later in pairwise(rates))
