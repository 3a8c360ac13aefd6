"""Remedies against closed forms: one lock, constant holds and thinks, a machine without costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from batch_scene import LOCK, batch, fixed, member, target, time_ns, turns
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.simulate.batch import limit_of
from contention_lab.simulate.packing import Op
from contention_lab.simulate.prediction.question import fixes
from contention_lab.simulate.program import acquire, compute, release, sleep
from contention_lab.simulate.remedies import REMEDIES, RemedyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.simulate.batch import Batch

THREADS, TURNS, THINK, HOLD = 4, 25, 3000.0, 2000.0


def saturated(hold: list[Any] | None = None) -> Batch:
    return batch(*[turns(TURNS, THINK, hold or [compute(HOLD)])] * THREADS)


def test_taking_turns_takes_all_holds_one_after_the_other() -> None:
    assert time_ns(saturated()) == THINK + THREADS * TURNS * HOLD


def test_an_idle_lock_makes_nobody_wait() -> None:
    assert time_ns(batch(turns(TURNS, THINK, [compute(HOLD)]))) == TURNS * (THINK + HOLD)


@pytest.mark.parametrize("text", ["narrow=work", "remove", "shard=per-object"])
def test_without_the_lock_each_thread_takes_its_own_time(text: str) -> None:
    assert time_ns(fixed(saturated(), text)) == TURNS * (THINK + HOLD)


def test_without_the_lock_cores_are_what_is_left() -> None:
    expected = THREADS * TURNS * (THINK + HOLD) / 2

    assert time_ns(fixed(saturated(), "narrow=work"), cores=2) == pytest.approx(expected)


def test_work_taken_out_shortens_the_turns_by_as_much() -> None:
    many = batch(*[turns(TURNS, THINK, [compute(HOLD)])] * 20)

    found = time_ns(fixed(many, "narrow=work:75%"))

    assert found == pytest.approx(20 * TURNS * 0.25 * HOLD + THINK + 0.75 * HOLD)


def test_faster_code_shortens_the_turns_and_nothing_else() -> None:
    assert time_ns(fixed(saturated(), "faster=work:30")) == THINK + THREADS * TURNS * 0.7 * HOLD


def test_sleep_moved_out_overlaps() -> None:
    found = saturated([sleep(HOLD), compute(500.0)])

    assert time_ns(found) == THINK + THREADS * TURNS * (HOLD + 500.0)
    assert time_ns(fixed(found, "move-out=work")) == pytest.approx(
        TURNS * (THINK + HOLD + 500.0), rel=0.03
    )


def test_merged_calls_do_the_same_work_in_fewer_turns() -> None:
    found = fixed(saturated(), "merge-calls=5")

    assert time_ns(found) == 5 * THINK + THREADS * TURNS * HOLD
    ops = found.crew[0].ops
    assert np.count_nonzero(ops["code"] == Op.ACQUIRE) == TURNS / 5


def test_a_channel_keeps_one_server() -> None:
    assert time_ns(fixed(saturated(), "channel")) == THINK + THREADS * TURNS * HOLD


def test_streams_do_the_native_work_while_callers_go_on() -> None:
    alone = batch(turns(TURNS, THINK, [compute(HOLD)]))

    # Thinking goes on while streams work: what is left is thinking, and the last request.
    assert time_ns(fixed(alone, "async-backend", cores=2)) == TURNS * THINK + HOLD


def test_streams_leave_python_code_under_the_lock() -> None:
    found = batch(*[turns(TURNS, THINK, [compute(HOLD, gil=True), compute(1.0)])] * THREADS)

    assert time_ns(fixed(found, "async-backend", cores=2)) >= THREADS * TURNS * HOLD


@pytest.mark.parametrize("kind", ["mcs", "test-and-set", "adaptive"])
def test_another_lock_keeps_what_is_serial(kind: str) -> None:
    found = time_ns(fixed(saturated(), f"lock={kind}"))

    assert found >= THREADS * TURNS * HOLD


@pytest.mark.parametrize("text", ["lock=mcs", "merge-calls=4", "channel"])
def test_a_cheaper_lock_is_not_sold_as_one_that_lifts_the_serial_share(text: str) -> None:
    found = saturated()
    (fix,) = fixes(target(found), [text])
    bound = limit_of(found, THREADS, 64).least_ns

    assert not fix.remedy.lifts
    assert limit_of(fix.applied(found), THREADS, 64).least_ns >= bound * 0.999


def test_locks_within_the_section_stay_locked_when_it_is_narrowed() -> None:
    inner = 2
    hold = [compute(HOLD), acquire(inner), compute(HOLD), release(inner)]
    found = fixed(batch(*[turns(TURNS, THINK, hold)] * THREADS), "narrow=work:50")

    for one in found.crew:
        ops = one.ops
        for lock in (LOCK, inner):
            mine = ops[ops["target"] == lock]["code"]
            assert mine.tolist() == [Op.ACQUIRE, Op.RELEASE] * TURNS
    assert found.work_ns == THREADS * TURNS * (THINK + 2 * HOLD)


def test_the_bound_names_what_sets_it() -> None:
    found = saturated()

    assert limit_of(found, THREADS, 64).set_by == "lock"
    assert limit_of(found, THREADS, 64).lock == LOCK
    assert limit_of(found, 1, 64).set_by == "threads"
    assert limit_of(fixed(found, "remove"), THREADS, 2).set_by == "cores"


def test_of_shards_each_bounds_with_its_part() -> None:
    found = limit_of(fixed(saturated(), "shard=4"), 1000, 1000)

    assert found.least_ns == pytest.approx(THREADS * TURNS * HOLD / 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("narow=work", "one of: narrow=SITE"),
        ("narrow=elsewhere", "the lock is taken by work (work.py:7)"),
        ("narrow", "write narrow=SITE[:SHARE]"),
        ("narrow=work:lots", "give a share"),
        ("faster=work", "work:50"),
        ("shard=1", "from 2 to 4096"),
        ("shard=some", "from 2 to 4096"),
        ("lock=magic", "one of: test-and-set"),
        ("move-out=work", "no input, output or sleep"),
        ("remove=it", "takes no argument"),
        ("merge-calls=0", "from 2 to"),
    ],
)
def test_a_remedy_that_makes_no_sense_is_answered_with_one_line(text: str, said: str) -> None:
    with pytest.raises(RemedyError) as error:
        fixes(target(saturated()), [text])

    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["work", "work.py:7", "work.py", "work:7"])
def test_a_place_can_be_written_as_people_do(name: str) -> None:
    assert time_ns(fixed(saturated(), f"narrow={name}")) == TURNS * (THINK + HOLD)


def test_what_is_suggested_can_be_asked_for() -> None:
    found = fixes(target(saturated()))

    assert {fix.remedy.kind for fix in found} >= {"narrow", "shard", "faster", "remove", "lock"}
    assert {fix.remedy.kind for fix in found} <= {*REMEDIES}
    assert [fix.text for fix in fixes(target(saturated()), [fix.text for fix in found])] == [
        fix.text for fix in found
    ]


def test_shards_take_as_long_as_an_independent_simulation_says() -> None:
    simpy = pytest.importorskip("simpy")
    import random

    generator, parts, threads, count = random.Random(3), 3, 6, 400
    env = simpy.Environment()
    locks = [simpy.Resource(env, 1) for _ in range(parts)]

    def thread() -> Iterator[Any]:
        for _ in range(count):
            yield env.timeout(THINK)
            lock = locks[generator.randrange(parts)]
            turn = lock.request()
            yield turn
            yield env.timeout(HOLD)
            lock.release(turn)

    for _ in range(threads):
        env.process(thread())
    env.run()
    found = batch(*[turns(count, THINK, [compute(HOLD)])] * threads)

    assert time_ns(fixed(found, f"shard={parts}")) == pytest.approx(env.now, rel=0.04)


@settings(max_examples=40, deadline=None)
@given(
    thinks=st.lists(st.integers(0, 5000), min_size=1, max_size=12),
    hold=st.integers(1, 4000),
    text=st.sampled_from(
        ["narrow=work", "narrow=work:40", "shard=3", "remove", "merge-calls=3", "faster=work:50"]
    ),
    threads=st.integers(1, 6),
)
def test_no_remedy_beats_its_bound_or_loses_work(
    thinks: list[int], hold: int, text: str, threads: int
) -> None:
    steps = [
        step
        for think in thinks
        for step in (compute(think), acquire(LOCK), compute(hold), release(LOCK))
    ]
    found = fixed(batch(*[steps] * 3), text)

    for count in (None, threads):
        took = time_ns(found, count, cores=4)
        assert took >= limit_of(found, count or 3, 4).least_ns * (1 - 1e-9)
    if not text.startswith("faster"):
        assert found.work_ns == pytest.approx(3 * (sum(thinks) + len(thinks) * hold))


def test_a_piece_of_work_is_done_once_whoever_does_it() -> None:
    one = member(0, turns(3, THINK, [compute(HOLD)]))

    assert one.cuts.tolist() == [0, 1, 4, 5, 8, 9, 12]
