"""Costs that are fitted to measurements: those of a lock whose costs are known come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contention_lab.simulate.cost_fit import Measured, cycle_ns, fitted_costs, handoff_curve
from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES

RATIOS = ((0.0, 0.0), (200.0, 1000.0))
COUNTS = (1, 2, 4, 8, 16)
HOST = Machine.ideal(16)


def measured(
    kind: str, costs: LockCosts, ratios: tuple[tuple[float, float], ...] = RATIOS
) -> list[Measured]:
    """Simulate what a host with these costs would measure."""
    return [
        Measured(hold, think, n, cycle_ns(POLICIES[kind], costs, HOST, hold, think, n))
        for hold, think in ratios
        for n in COUNTS
    ]


@pytest.mark.parametrize("kind", ["ticket", "mcs", "test-and-set"])
def test_hand_offs_of_a_spinlock_are_read_off(kind: str) -> None:
    true = LockCosts(
        acquire_ns=20.0, release_ns=0.0, transfer_ns=90.0, handoff_ns=((1.0, 90.0), (15.0, 300.0))
    )

    found = fitted_costs(POLICIES[kind], measured(kind, true), HOST)

    assert found.acquire_ns == pytest.approx(20.0, rel=0.1)
    for waiters in (3, 7, 14):
        assert found.table(16)[waiters] == pytest.approx(true.table(16)[waiters], rel=0.12)


@pytest.mark.parametrize("kind", ["ticket", "test-and-set"])
def test_another_ratio_is_predicted_with_them(kind: str) -> None:
    true = LockCosts(release_ns=0.0, handoff_ns=((1.0, 90.0), (15.0, 500.0)))
    costs = fitted_costs(POLICIES[kind], measured(kind, true), HOST)

    for hold, think, threads, cycle in measured(kind, true, ((1000.0, 5000.0),)):
        found = cycle_ns(POLICIES[kind], costs, HOST, hold, think, threads)
        assert found == pytest.approx(cycle, rel=0.05)


def test_another_ratio_is_predicted_for_a_lock_that_sleeps() -> None:
    true = replace(
        POLICIES["parking"].defaults,
        release_ns=0.0,
        park_ns=900.0,
        wake_call_ns=1_300.0,
        wake_extra_ns=6_000.0,
    )
    costs = fitted_costs(POLICIES["parking"], measured("parking", true), HOST)

    errors = [
        abs(cycle_ns(POLICIES["parking"], costs, HOST, hold, think, threads) / cycle - 1.0)
        for hold, think, threads, cycle in measured("parking", true, ((1000.0, 5000.0),))
    ]
    assert sorted(errors)[len(errors) // 2] < 0.15


def test_hand_offs_never_fall_with_more_waiters() -> None:
    points = [
        Measured(0.0, 0.0, threads, threads * handoff)
        for threads, handoff in ((2, 50.0), (3, 80.0), (4, 60.0), (5, 120.0))
    ]

    values = [ns for _, ns in handoff_curve(points)]

    assert values == pytest.approx([50.0, 70.0, 70.0, 120.0])


def test_a_lock_that_is_mostly_idle_tells_no_hand_off() -> None:
    assert handoff_curve([Measured(100.0, 10_000.0, 2, 10_150.0)]) == ()


def test_costs_need_one_thread_and_several() -> None:
    for threads in (1, 2):
        with pytest.raises(ValueError, match="with one thread, and with several"):
            fitted_costs(POLICIES["mcs"], [Measured(0.0, 0.0, threads, 50.0)], HOST)
