"""Predictions from traces made by hand: who works, what is explained, and what is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from batch_scene import FREE
from click.testing import CliRunner
from workers_scene import HOLD, THINK, TURNS, queue_of_workers

from contention_lab.cli.predict import command
from contention_lab.simulate.batch import batch_of, crew_of
from contention_lab.simulate.calibration import default_calibration
from contention_lab.simulate.capacity import capacity
from contention_lab.simulate.packing import Op
from contention_lab.simulate.prediction import predict
from contention_lab.simulate.prediction.predict import Asked, PredictionError, thread_counts
from contention_lab.simulate.prediction.uncertainty import worlds
from contention_lab.simulate.remedies import RemedyError
from contention_lab.trace import HoldFlag, Outcome, WaitKind, load
from contention_lab.trace.builder import TraceBuilder
from contention_lab.trace.schema import State

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.simulate.prediction import Prediction
    from contention_lab.trace import Trace

US = 1_000


@pytest.fixture
def made(tmp_path: Path) -> Any:
    def write(builder: TraceBuilder) -> Trace:
        builder.write(tmp_path / "made.clt")
        return load(tmp_path / "made.clt")

    return write


def predicted(trace: Trace, *threads: int, **asked: Any) -> Prediction:
    lock = next(id_ for id_, lock in trace.locks.items() if lock.label == "store")
    return predict(trace, [lock], FREE, recorded_cores=8, asked=Asked(threads, **asked))


def test_the_recorded_run_is_predicted_as_it_was(made: Any) -> None:
    found = predicted(made(queue_of_workers())).recorded

    assert found.threads == 4
    assert found.error == pytest.approx(0.0, abs=0.01)
    assert not found.is_missed


def test_more_threads_cannot_pass_the_lock(made: Any) -> None:
    found = predicted(made(queue_of_workers()), 1, 2, 16)

    alone, two, many = (one.time_ns for one in found.curve)
    assert alone == pytest.approx(4 * TURNS * (THINK + HOLD), rel=0.01)
    assert two < 0.6 * alone
    assert many == pytest.approx(4 * TURNS * HOLD, rel=0.05)
    assert [one.limit.set_by for one in found.curve] == ["threads", "threads", "lock"]


def test_every_time_lies_in_its_interval_and_above_its_bound(made: Any) -> None:
    found = predicted(made(queue_of_workers()), 1, 4, 64)

    for curve in (found.curve, *(option.curve for option in found.options)):
        for one in curve:
            assert one.limit.least_ns <= one.time_ns
            assert one.low_ns <= one.time_ns <= one.high_ns
            assert one.limit.least_ns <= one.limit.mean_value_ns
    for option in found.options:
        assert option.gain.low <= option.gain.times
        assert option.gain.high <= option.gain.bound


def test_remedies_are_ranked_by_what_they_bring(made: Any) -> None:
    options = predicted(made(queue_of_workers()), 4).options
    times = [float(f"{option.gain.times:.2g}") for option in options]
    by_text = {option.fix.text: option.gain.times for option in options}

    assert times == sorted(times, reverse=True)
    # Four threads, each with 0.3 + 0.2 ms of its own: 0.8 ms a turn becomes 0.5.
    assert by_text["narrow=Store.put"] == pytest.approx(0.8 / 0.5, rel=0.05)
    assert by_text["channel"] == pytest.approx(1.0, rel=0.05)


def test_the_same_trace_gives_the_same_prediction(made: Any) -> None:
    trace = made(queue_of_workers())

    one, other = (predicted(trace, 2, 4) for _ in range(2))

    assert [o.curve for o in one.options] == [o.curve for o in other.options]


def test_a_model_that_misses_the_recorded_run_says_so_and_widens(made: Any) -> None:
    builder = queue_of_workers()
    late = builder.add_thread("worker-9", start_ns=0, end_ns=400 * TURNS * HOLD, cpu_ns=10 * US)
    lock = 1
    builder.add_hold(lock, late, 5 * US, 6 * US)
    trace = made(builder)

    found = predicted(trace, 4)

    assert found.recorded.is_missed or found.recorded.error == pytest.approx(0.0, abs=0.03)
    if found.recorded.is_missed:
        assert found.curve[0].high_ns / found.curve[0].time_ns > 1.1


def test_threads_of_one_name_are_the_crew_and_main_is_not(made: Any) -> None:
    builder = queue_of_workers()
    main = builder.add_thread("MainThread", is_main=True, cpu_ns=100 * US)
    builder.add_hold(builder.add_lock("threading.Lock", name="other"), main, 0, 10 * US)
    trace = made(builder)

    crew = crew_of(trace, [1])

    assert crew is not None
    assert crew.name == "worker-#"
    assert len(crew.members) == crew.threads == 4
    assert main not in crew.members


def test_threads_that_follow_each_other_count_once(made: Any) -> None:
    builder = TraceBuilder(meta={"python": {"gil": False}}, duration_ns=900 * US)
    for place in range(9):
        builder.add_thread(f"t{place}", start_ns=place * 100 * US, end_ns=(place + 1) * 100 * US)

    crew = crew_of(made(builder))

    assert crew is not None
    assert (len(crew.members), crew.threads) == (9, 1)


def test_waiting_for_others_to_do_something_is_no_work(made: Any) -> None:
    builder = queue_of_workers(2)
    queue = builder.add_lock("queue.Queue")
    idle = builder.add_thread("worker-7", end_ns=1000 * US, cpu_ns=400 * US)
    builder.add_wait(queue, idle, 100 * US, 500 * US, kind=WaitKind.COORDINATION)
    builder.add_wait(
        queue, idle, 600 * US, 800 * US, kind=WaitKind.COORDINATION, outcome=Outcome.TIMED_OUT
    )
    trace = made(builder)
    crew = crew_of(trace, [1])
    assert crew is not None

    work = batch_of(trace, crew)
    one = next(one for one in work.crew if one.thread == idle)

    # A wait that somebody ended is left out; one that ran out of time is a sleep.
    asleep = one.ops["ns"][one.ops["code"] == Op.SLEEP].sum()
    assert asleep == pytest.approx(200 * US)


def test_a_semaphore_is_said_not_to_be_simulated(made: Any) -> None:
    builder = queue_of_workers(2)
    silent = predicted(made(builder), 2).batch.notes
    builder.add_lock("threading.Semaphore", name="permits")
    told = predicted(made(builder), 2).batch.notes

    assert not any("permits" in note for note in silent)
    assert any("permits of `permits` are not simulated" in note for note in told)


def pool(threads: int, permits: int, *, others_give_back: bool = False) -> TraceBuilder:
    """Return threads that sleep 100 us with a permit and compute 10 us without, 20 times each."""
    busy, rounds = 100 * US, 20
    groups = threads // permits
    end = (rounds * groups + 1) * busy
    builder = TraceBuilder(
        meta={"python": {"gil": False}, "machine": {"cores": 8}}, duration_ns=end
    )
    site = builder.add_frame("Pool.run", "/src/pool.py", 12)
    stack = builder.add_stack(site)
    lock = builder.add_lock("threading.Semaphore", name="store")
    flags = int(HoldFlag.HANDED_OFF) if others_give_back else 0
    for place in range(threads):
        thread = builder.add_thread(f"worker-{place}", end_ns=end, cpu_ns=rounds * 10 * US)
        for turn in range(rounds):
            start = (turn * groups + place // permits) * busy + 10 * US
            asked = start if turn == 0 else start - (groups - 1) * busy
            asked = 10 * US if turn == 0 else asked
            if asked < start:
                builder.add_wait(lock, thread, asked, start, stack=stack)
            builder.add_hold(
                lock, thread, start, start + 90 * US, site=site, stack=stack, flags=flags, cpu_ns=1
            )
    for look in range(0, end, 50 * US):
        builder.add_state(look, 1, int(State.BLOCKED))
    return builder


def test_as_many_permits_exist_as_were_out_and_more_make_it_faster(made: Any) -> None:
    found = predicted(made(pool(8, 2)), 8, fixes=("permits=4", "permits=8", "permits=2"))

    times = {option.fix.text: option.gain.times for option in found.options}
    bounds = {option.fix.text: option.gain.bound for option in found.options}
    assert found.target is not None
    assert (found.target.kind, found.target.permits) == ("semaphore", 2)
    assert found.recorded.error == pytest.approx(0.0, abs=0.1)
    assert times["permits=2"] == pytest.approx(1.0, abs=0.01)
    assert times["permits=4"] == pytest.approx(2.0, rel=0.1)
    assert times["permits=8"] > 3.0
    assert all(times[fix] <= bounds[fix] * 1.001 for fix in times)
    assert any("as many permits of `store`" in note for note in found.batch.notes)


def test_of_a_semaphore_only_what_makes_sense_is_suggested(made: Any) -> None:
    found = predicted(made(pool(8, 2)), 8)

    kinds = {option.fix.remedy.kind for option in found.options}
    assert "permits" in kinds
    assert not kinds & {"lock", "shard", "channel", "async-backend", "merge-calls"}


def test_permits_that_others_give_back_are_signals_and_not_simulated(made: Any) -> None:
    trace = made(pool(8, 2, others_give_back=True))
    crew = crew_of(trace)

    assert crew is not None
    assert capacity(trace, next(iter(trace.locks))) == 0
    assert not batch_of(trace, crew).kinds


def test_a_lock_takes_no_permits(made: Any) -> None:
    with pytest.raises(RemedyError, match="no semaphore"):
        predicted(made(queue_of_workers()), 4, fixes=("permits=2",))


def test_of_a_large_trace_a_part_stands_for_all(made: Any) -> None:
    trace = made(queue_of_workers())
    crew = crew_of(trace, [1])
    assert crew is not None

    whole, part = batch_of(trace, crew), batch_of(trace, crew, steps=200)

    assert sum(len(one.ops) for one in part.crew) < sum(len(one.ops) for one in whole.crew)
    assert part.work_ns == pytest.approx(whole.work_ns, rel=0.02)
    half = batch_of(trace, crew, events=100)
    assert half.work_ns == pytest.approx(whole.work_ns, rel=0.2)


def test_without_the_gil_the_lock_takes_over(made: Any) -> None:
    trace = made(queue_of_workers(gil=True))

    with_gil, without = (predicted(trace, 1, 16, gil=gil) for gil in (True, False))

    assert with_gil.curve[-1].limit.set_by == "gil"
    assert without.curve[-1].limit.set_by == "lock"
    assert without.curve[-1].time_ns < 0.5 * with_gil.curve[-1].time_ns
    assert without.target is not None
    assert without.target.label == "store"


def test_costs_that_nobody_measured_are_less_certain() -> None:
    default = default_calibration(2)
    measured = default.from_json({**default.to_json(), "measured_at": "2026-01-01"})

    def spread(of: Any) -> float:
        found = [world.calibration.costs["parking"].wake_call_ns for world in worlds(of, 200, 1)]
        return float(np.std(np.log(found)))

    assert spread(default) > 2 * spread(measured)
    assert worlds(default, 3, 1) == worlds(default, 3, 1)


def test_a_recording_of_nothing_is_refused(made: Any) -> None:
    with pytest.raises(PredictionError, match="nothing to predict"):
        predict(made(TraceBuilder(duration_ns=10)), [], FREE, recorded_cores=2)


def test_thread_counts_reach_beyond_what_was_recorded_and_there_is() -> None:
    assert thread_counts(4, 2) == (1, 2, 4, 8)
    assert thread_counts(6, 8) == (1, 2, 4, 6, 8, 16)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    queue_of_workers().write(tmp_path / "run.clt")
    return tmp_path / "run.clt"


def test_the_command_prints_the_recorded_run_the_curve_and_the_remedies(written: Path) -> None:
    answer = CliRunner().invoke(command, [str(written), "--threads", "1,4"])

    assert answer.exit_code == 0, answer.output
    assert "explains the recorded run within" in answer.output
    assert "narrow=Store.put" in answer.output
    assert "beware, shard: " in answer.output
    assert "same" in next(line for line in answer.output.splitlines() if "lock=adaptive" in line)


def test_the_command_prints_json(written: Path) -> None:
    answer = CliRunner().invoke(
        command, [str(written), "--json", "--fix", "shard=4", "--fix", "lock=mcs"]
    )
    found = json.loads(answer.stdout)

    assert {one["fix"]: one["lifts_serial_share"] for one in found["remedies"]} == {
        "shard=4": True,
        "lock=mcs": False,
    }
    assert found["lock"]["sites"][0]["places"] == ["store.py:12"]
    assert found["recorded"]["threads"] == 4


def test_a_bad_fix_is_one_line_with_the_places_of_the_trace(written: Path) -> None:
    answer = CliRunner().invoke(command, [str(written), "--fix", "narrow=nowhere"])

    assert answer.exit_code == 1
    assert "taken by Store.put (store.py:12)" in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_plot_is_written_in_the_format_of_its_name(written: Path, suffix: str) -> None:
    target = written.with_suffix(f".{suffix}")

    answer = CliRunner().invoke(command, [str(written), "-o", str(target), "--threads", "1,2,4"])

    assert answer.exit_code == 0, answer.output
    begins = target.read_bytes()[:5]
    assert begins == (b"<?xml" if suffix == "svg" else b"\x89PNG\r")


def test_no_gil_names_the_lock_the_ceiling_and_what_to_fix_first(written: Path) -> None:
    answer = CliRunner().invoke(command, [str(written), "--no-gil", "--threads", "1,4,32"])

    assert "without the GIL `store` takes over" in answer.output
    assert "fix it first" in answer.output
    assert "ceiling: 2.5 times" in answer.output


def test_more_spinning_threads_than_cores_are_less_certain(made: Any) -> None:
    trace = made(queue_of_workers())

    def widths(cores: int) -> dict[str, float]:
        fixes = ("lock=ticket", "lock=parking")
        found = predicted(trace, 4, cores=cores, fixes=fixes)
        return {
            option.fix.text: option.curve[0].high_ns / option.curve[0].time_ns
            for option in found.options
        }

    few, enough = widths(2), widths(8)

    assert few["lock=ticket"] > 1.5
    assert few["lock=parking"] < 1.3
    assert max(enough.values()) < 1.3


def test_tasks_of_an_event_loop_are_no_threads_to_predict(made: Any) -> None:
    builder = TraceBuilder(meta={"python": {"gil": True}}, duration_ns=1000 * US)
    builder.add_thread("MainThread", native_id=7, end_ns=1000 * US, cpu_ns=900 * US, is_main=True)
    for number in range(3):
        builder.add_thread(f"Task-{number}", native_id=7, end_ns=1000 * US, is_task=True)
    builder.add_lock("asyncio.Lock", name="store")

    with pytest.raises(PredictionError, match="take turns on one thread"):
        predicted(made(builder), 1, 2)


def test_waits_for_others_to_do_something_are_said_to_be_left_out(made: Any) -> None:
    builder = queue_of_workers(2)
    silent = predicted(made(builder), 2).batch.notes
    event = builder.add_lock("threading.Event", name="ready")
    waiter = builder.add_thread("waiter", end_ns=16_000 * US, cpu_ns=8_000 * US)
    builder.add_wait(event, waiter, 0, 8_000 * US, kind=WaitKind.COORDINATION)
    told = predicted(made(builder), 2).batch.notes

    assert not any("conditions" in note for note in silent)
    assert any("conditions, events, queues" in note for note in told)


def test_of_a_reader_writer_lock_only_the_best_is_told(written: Path) -> None:
    words = [str(written), "--threads", "1,4", "--fix", "lock=rwlock", "--fix", "remove"]
    asked = CliRunner().invoke(command, [*words, "--json"], standalone_mode=False)
    best, bound = json.loads(asked.stdout[asked.stdout.index("{") :])["remedies"]
    alone = CliRunner().invoke(command, words[:-2], standalone_mode=False)

    assert (best["fix"], bound["fix"]) == ("remove", "lock=rwlock")
    assert bound["at_best"]
    assert not best["at_best"]
    assert bound["gain"]["times"] == best["gain"]["times"]
    assert bound["gain"]["low"] == 1.0
    assert "does not tell reads from writes" in bound["warning"]
    assert "makes it at best" in alone.stderr
    assert "less at best" in alone.stdout
