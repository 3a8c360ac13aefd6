"""Designs that nobody has run, against closed forms: costs are nothing, items are all alike."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from batch_scene import FREE

from contention_lab.simulate.batch import Conditions
from contention_lab.simulate.batch.run import Draw, Runner
from contention_lab.simulate.design import (
    Call,
    Design,
    HandOver,
    Outlook,
    Remainder,
    Runs,
    Sample,
    batch_of_design,
    kind_of_lock,
    remainder_of,
)

ITEMS, CORES = 32, 64
THINK, HOLD = 3000.0, 2000.0
CALLS = (Call(False, 1, 0, 1), Call(True, 0, 2, 4))
SAMPLE = Sample(
    np.tile([THINK, 0.0], (ITEMS, 1)), np.tile([0.0, HOLD], (ITEMS, 1)), 0.0, 1, ITEMS * 5000.0
)
"""Items that think, put a node into the tables for nothing, and hold."""
NOTHING = HandOver(0.0, 0.0)
GLOBAL = Design("global", kind_of_lock("mutex"), "calls", "nobody", False, False, CALLS)


def time_ns(design: Design, threads: int, cores: int = CORES, costs: HandOver = NOTHING) -> float:
    batch = batch_of_design(design, SAMPLE, threads, cores, costs)
    conditions = Conditions(None if batch.each_its_own else threads, cores, FREE)
    return Runner(batch).run(conditions, Draw(10**9)).elapsed_ns


def test_one_thread_takes_the_time_of_all_items_whatever_the_design() -> None:
    for covers, apart in (("calls", "nobody"), ("tables", "nobody"), ("nothing", "threads")):
        design = replace(GLOBAL, covers=covers, apart=apart)
        assert time_ns(design, 1) == pytest.approx(ITEMS * (THINK + HOLD))


def test_under_one_lock_the_holds_come_one_after_the_other() -> None:
    found = time_ns(GLOBAL, ITEMS)

    assert found == pytest.approx(THINK + ITEMS * HOLD)


@pytest.mark.parametrize(
    ("covers", "apart"), [("tables", "nobody"), ("calls", "graphs"), ("nothing", "threads")]
)
def test_where_kernels_need_no_common_lock_threads_do_not_wait(covers: str, apart: str) -> None:
    found = time_ns(replace(GLOBAL, covers=covers, apart=apart), ITEMS)

    assert found == pytest.approx(THINK + HOLD)


def test_a_server_thread_makes_the_long_calls_one_after_the_other() -> None:
    channel = replace(GLOBAL, lock=None, covers="nothing", has_thread=True)

    assert time_ns(channel, ITEMS) == pytest.approx(THINK + ITEMS * HOLD)
    sent = time_ns(channel, 1, costs=HandOver(50.0, 0.0))
    assert sent == pytest.approx(ITEMS * (THINK + HOLD + 2 * 50.0))


def test_streams_do_all_kernels_on_as_many_cores_as_there_are() -> None:
    queued = replace(GLOBAL, queues=True)

    assert time_ns(queued, 8, cores=64) == pytest.approx(ITEMS * (THINK + HOLD) / 8)
    assert time_ns(queued, 1, costs=HandOver(0.0, 10.0)) >= ITEMS * (THINK + HOLD + 3 * 10.0)


def test_a_slow_table_is_a_hold_of_the_narrow_lock() -> None:
    slow = replace(SAMPLE, within_ns=np.tile([100.0, HOLD], (ITEMS, 1)))
    batch = batch_of_design(replace(GLOBAL, covers="tables"), slow, ITEMS, CORES, NOTHING)

    found = Runner(batch).run(Conditions(ITEMS, CORES, FREE, gil=False), Draw(10**9)).elapsed_ns

    # Each item holds it once to register, and twice as long as its four nodes would take.
    assert found >= ITEMS * (100.0 + 2 * 400.0)


def test_spinning_designs_are_those_whose_waiters_keep_their_cores() -> None:
    assert replace(GLOBAL, lock=kind_of_lock("spinlock")).spins
    assert not GLOBAL.spins
    assert not replace(GLOBAL, lock=kind_of_lock("spinlock"), apart="graphs").spins
    assert kind_of_lock("") is None


def test_a_prospect_has_an_interval_around_it_and_is_the_same_again() -> None:
    outlook = Outlook([SAMPLE], [SAMPLE], FREE, NOTHING)

    found = outlook.prospect(GLOBAL, ITEMS, 4, 2)

    assert found.low_ns < found.time_ns < found.high_ns
    assert found == outlook.prospect(GLOBAL, ITEMS, 4, 2)
    wide = replace(outlook, remainder=Remainder(spread=math.log(2))).prospect(GLOBAL, ITEMS, 4, 2)
    assert wide.high_ns >= 2 * wide.time_ns


def test_what_recorded_runs_took_beside_is_added_by_the_cores_at_work() -> None:
    # They took as long as simulated with one core at work, and twice as long with two.
    outlook = Outlook([SAMPLE], [SAMPLE], FREE, NOTHING)
    loaded = replace(outlook, remainder=Remainder(0.0, math.log(2), 1.0, 2.0))
    apart = replace(GLOBAL, covers="nothing", apart="threads")

    for design, threads in ((GLOBAL, 1), (GLOBAL, 8), (apart, 8)):
        without = outlook.prospect(design, ITEMS, threads, 2)
        found = loaded.prospect(design, ITEMS, threads, 2)
        at_work = without.cores_at_work
        assert found.time_ns == pytest.approx(without.time_ns * 2 ** (at_work - 1.0))
    assert outlook.prospect(apart, ITEMS, 8, 2).cores_at_work == pytest.approx(2.0)
    assert outlook.prospect(GLOBAL, ITEMS, 1, 2).cores_at_work == pytest.approx(1.0)
    assert 1.5 < outlook.prospect(GLOBAL, ITEMS, 8, 2).cores_at_work < 2.0
    # Five of six spin for the sixth: all have a core, and none is idle.
    spins = replace(GLOBAL, lock=kind_of_lock("spinlock"))
    assert outlook.prospect(spins, ITEMS, 6, 6).cores_at_work > 5.0


def test_a_remainder_is_taken_from_both_kinds_of_runs() -> None:
    found = remainder_of(Runs([2.0, 2.2, 1.8], 2.0, 1.0), Runs([3.0, 3.3, 2.7], 2.0, 1.8))

    assert found.factor(1.0) == pytest.approx(1.0)
    assert found.factor(1.8) == pytest.approx(1.5)
    assert found.factor(1.4) == pytest.approx(math.sqrt(1.5))
    assert (found.factor(0.5), found.factor(8.0)) == (found.factor(1.0), found.factor(1.8))
    assert found.spread == pytest.approx(0.1, rel=0.2)


def test_runs_with_as_many_cores_at_work_say_the_same_twice() -> None:
    found = remainder_of(Runs([2.0], 2.0, 1.0), Runs([8.0], 2.0, 1.0))

    assert found.factor(1.0) == pytest.approx(2.0)
    assert found.spread == 0.0
