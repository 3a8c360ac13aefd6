"""What becomes of samples: waits, inferred holders, and a verdict that does not say too much."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sampled_scene import (
    ASLEEP,
    GETS,
    HOLDS,
    OUTSIDE,
    RUNS,
    SLEEPS,
    SPINS,
    STEP_NS,
    TAKES,
    WAITS_GIL,
    scene,
)

from contention_lab.diagnosis import diagnose
from contention_lab.trace import Doing, Trace, WaitKind

if TYPE_CHECKING:
    from pathlib import Path

LOCK, OTHER = 0x7F00, 0x7F80


def held_by_turns(
    state: object = RUNS, words: tuple[int, int] = (LOCK, LOCK)
) -> list[list[object]]:
    """Two threads in turn have a lock for five moments each, the other waits; a third works."""
    moments: list[list[object]] = []
    for number in range(200):
        turn = number // 5 % 2
        pair: list[object] = [(TAKES, ASLEEP, words[turn]), (TAKES, ASLEEP, words[turn])]
        pair[turn] = (HOLDS, state, 0)
        moments.append([*pair, (OUTSIDE, RUNS, 0)])
    return moments


def verdict(trace: Trace) -> str:
    found = diagnose(trace)
    json.dumps(found.to_json())
    return found.verdict


def test_a_lock_is_accused_with_who_has_it_and_intervals(tmp_path: Path) -> None:
    trace = scene(tmp_path, held_by_turns())

    found = diagnose(trace)

    assert found.verdict == "serialised-by-lock"
    first = found.findings[0]
    assert first.lock is not None
    assert (first.lock.name, first.lock.type) == ("Pool._lock", "threading.Lock")
    assert first.lock.site is not None
    assert first.lock.site.line == 5
    assert [party.site and party.site.function for party in first.culprits] == ["work"]
    assert [party.site and party.site.function for party in first.victims] == ["Pool.take"]
    low, high = (first.evidence[f"sampled_wait_share_{end}"] for end in ("low", "high"))
    assert low is not None
    assert high is not None
    assert low < 0.5 < high
    assert "By samples" in found.summary
    assert any("samples by py-spy" in line and "inferred" in line for line in found.not_seen)


def test_samples_in_a_row_become_waits_and_holds_of_their_length(tmp_path: Path) -> None:
    trace = scene(tmp_path, held_by_turns())

    waits, holds = trace.waits, trace.holds
    assert len(waits) == 40
    assert {int(wait["end_ns"] - wait["start_ns"]) for wait in waits} == {5 * STEP_NS}
    assert len(holds) == 40
    assert {int(hold["end_ns"] - hold["start_ns"]) for hold in holds} == {5 * STEP_NS}
    assert set(waits["holder"]) == {1, 2}
    assert not len(trace.counters)


def test_a_holder_that_sleeps_is_held_across_io(tmp_path: Path) -> None:
    assert verdict(scene(tmp_path, held_by_turns(SLEEPS))) == "held-across-io"


def test_a_holder_that_wants_the_gil_is_not_blamed(tmp_path: Path) -> None:
    assert verdict(scene(tmp_path, held_by_turns(WAITS_GIL))) == "gil-masked-lock"


def test_two_locks_of_one_name_accuse_nobody(tmp_path: Path) -> None:
    trace = scene(tmp_path, held_by_turns(words=(LOCK, OTHER)))

    found = diagnose(trace)

    assert found.verdict == "healthy"
    assert found.summary.startswith("Nobody is accused")
    assert not trace.samples["holder"].any()


def test_two_threads_within_its_code_at_once_accuse_nobody(tmp_path: Path) -> None:
    moments = [[(TAKES, ASLEEP, LOCK), (HOLDS, RUNS, 0), (HOLDS, RUNS, 0)]] * 200

    assert diagnose(scene(tmp_path, moments)).summary.startswith("Nobody is accused")


def test_a_lock_nobody_is_seen_to_hold_accuses_nobody(tmp_path: Path) -> None:
    moments = [[(TAKES, ASLEEP, LOCK), (OUTSIDE, RUNS, 0)]] * 200

    found = diagnose(scene(tmp_path, moments))

    assert found.verdict == "healthy"
    assert "Pool._lock" in found.summary


def test_spinning_is_told_from_waiting_for_the_gil(tmp_path: Path) -> None:
    spins, waits = (SPINS, RUNS, 0), (SPINS, WAITS_GIL, 0)
    moments = [
        [(OUTSIDE, SLEEPS, 0), *((spins, waits) if i % 2 else (waits, spins))] for i in range(200)
    ]

    trace = scene(tmp_path, moments)

    assert verdict(trace) == "spin-collapse"
    assert "gil-bound" not in {finding.kind for finding in diagnose(trace).findings}


def test_threads_that_want_the_gil_are_gil_bound(tmp_path: Path) -> None:
    runs, waits = (OUTSIDE, RUNS, 0), (OUTSIDE, WAITS_GIL, 0)
    moments = [[runs, waits, waits] if i % 2 else [waits, waits, runs] for i in range(200)]

    assert verdict(scene(tmp_path, moments)) == "gil-bound"


def test_idle_workers_are_idle(tmp_path: Path) -> None:
    moments = [[(OUTSIDE, SLEEPS, 0), (GETS, ASLEEP, LOCK), (GETS, ASLEEP, OTHER)]] * 200

    trace = scene(tmp_path, moments)

    assert verdict(trace) == "idle-wait"
    assert set(trace.waits["kind"]) == {WaitKind.COORDINATION}


def test_few_samples_say_nothing(tmp_path: Path) -> None:
    assert verdict(scene(tmp_path, held_by_turns()[:10])) == "healthy"


def test_without_a_common_time_nobody_is_named(tmp_path: Path) -> None:
    trace = scene(tmp_path, held_by_turns(), about={"timed": False})

    assert verdict(trace) == "healthy"
    assert not len(trace.waits)
    assert int(trace.samples["doing"][0]) == Doing.HOLDS_GIL


def test_a_thread_on_a_cpu_under_a_stack_that_mostly_sleeps_runs(tmp_path: Path) -> None:
    """Calls into native code: of one stack, some run and most wait for something unknown."""
    asleep = (OUTSIDE, ASLEEP, LOCK)
    trace = scene(tmp_path, [[asleep, asleep, (OUTSIDE, ASLEEP, 0, RUNS)]] * 100)

    doing = {int(sample["thread"]): Doing(int(sample["doing"])) for sample in trace.samples}

    assert doing == {1: Doing.UNKNOWN, 2: Doing.UNKNOWN, 3: Doing.HOLDS_GIL}
    assert "in code that does not say what for" in diagnose(trace).summary
