"""simpy as an independent oracle: another engine, another author, the same system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.simulate.lock_policy import NO_COSTS, LockCosts
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.textbook import ClosedSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

simpy = pytest.importorskip("simpy")

HOLD_NS, THINK_NS, END_NS, WARMUP_NS = 200.0, 1000.0, 6e6, 2e5


def finished_in_simpy(
    threads: int,
    cores: int,
    handoff_ns: float,
    draw: Callable[[float], float],
    park: bool,
) -> int:
    """Count the operations that end after the warm-up.

    A thread thinks on a core, then queues for the lock, gives its core back while it waits (`park`)
    or keeps it (a spinner), and holds the lock on a core.
    """
    env = simpy.Environment()
    core = simpy.Resource(env, cores)
    lock = simpy.Resource(env, 1)
    done = 0

    def thread() -> Iterator[Any]:
        nonlocal done
        place = core.request()
        yield place
        while True:
            yield env.timeout(draw(THINK_NS))
            turn = lock.request()
            waits = not turn.triggered
            if waits and park:
                core.release(place)
            yield turn
            if waits and park:
                place = core.request()
                yield place
            yield env.timeout(draw(HOLD_NS) + (handoff_ns if waits else 0.0))
            lock.release(turn)
            if env.now >= WARMUP_NS:
                done += 1

    for _ in range(threads):
        env.process(thread())
    env.run(until=END_NS)
    return done


def finished_here(kind: str, threads: int, cores: int, costs: LockCosts, spread: float) -> int:
    machine = Machine.ideal(cores)
    system = ClosedSystem(POLICIES[kind], costs, machine, HOLD_NS, THINK_NS, spread, spread)
    tables = system.program(threads).tables(machine, warmup_ns=WARMUP_NS, end_ns=END_NS)
    from contention_lab.simulate.engine import simulate

    return simulate(tables).finished


@pytest.mark.parametrize("threads", [1, 2, 4, 6, 9, 16])
@pytest.mark.parametrize("handoff_ns", [0.0, 90.0])
def test_constant_times_give_the_same_count(threads: int, handoff_ns: float) -> None:
    costs = LockCosts(
        acquire_ns=0.0, release_ns=0.0, transfer_ns=0.0, handoff_ns=((1.0, handoff_ns),)
    )

    found = finished_here("mcs", threads, 16, costs, 0.0)

    expected = finished_in_simpy(threads, 16, handoff_ns, lambda ns: ns, park=False)
    assert found == pytest.approx(expected, abs=threads)


@pytest.mark.parametrize("threads", [2, 5, 9])
def test_exponential_times_give_the_same_rate(threads: int) -> None:
    import random

    generator = random.Random(5)

    found = finished_here("ticket", threads, 16, NO_COSTS, 1.0)

    expected = finished_in_simpy(
        threads, 16, 0.0, lambda ns: generator.expovariate(1.0 / ns), park=False
    )
    assert found == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("threads", "cores"), [(2, 1), (3, 2), (6, 2), (12, 4)])
def test_sleeping_waiters_give_their_cores_to_others(threads: int, cores: int) -> None:
    import random

    generator = random.Random(6)

    found = finished_here("parking", threads, cores, NO_COSTS, 1.0)

    expected = finished_in_simpy(
        threads, cores, 0.0, lambda ns: generator.expovariate(1.0 / ns), park=True
    )
    # simpy hands the lock over in order, and runs no slices: the same work, cut otherwise.
    assert found == pytest.approx(expected, rel=0.06)
