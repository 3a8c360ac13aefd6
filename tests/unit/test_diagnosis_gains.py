"""Remedies of a diagnosis: predicted where the trace tells enough, bounds where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from workers_scene import HOLD, THINK, queue_of_workers

from contention_lab.diagnosis import diagnose, trace_diagnosis
from contention_lab.trace import Call, State, load
from contention_lab.trace.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

PERMIT_HELD = 2_000_000


@pytest.fixture
def made(tmp_path: Path) -> Any:
    def write(builder: TraceBuilder) -> Trace:
        builder.write(tmp_path / "made.clt")
        return load(tmp_path / "made.clt")

    return write


def test_remedies_are_predicted_from_the_recorded_work(made: Any) -> None:
    (finding, *_) = diagnose(made(queue_of_workers(sampled=True))).findings
    by_kind = {remedy.kind: remedy for remedy in finding.remedies}

    narrow = by_kind["narrow"]
    assert finding.kind == "serialised-by-lock"
    assert narrow.basis == "simulated"
    assert narrow.speedup == pytest.approx(4 * HOLD / (HOLD + THINK), rel=0.06)
    assert narrow.speedup_low <= narrow.speedup <= narrow.speedup_high
    assert by_kind["shard"].basis == "simulated"


def test_the_most_promising_remedy_comes_first(made: Any) -> None:
    (finding, *_) = diagnose(made(queue_of_workers(sampled=True))).findings

    gains = [remedy.speedup for remedy in finding.remedies if remedy.speedup is not None]
    assert gains == sorted(gains, reverse=True)


def test_a_trace_that_does_not_say_what_threads_did_has_bounds(made: Any) -> None:
    (finding, *_) = diagnose(made(queue_of_workers())).findings

    for remedy in finding.remedies:
        assert (remedy.basis, remedy.speedup) == ("bound", None)
        assert remedy.to_json()["basis"] == "bound"


def test_predictions_change_neither_the_verdict_nor_the_order(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = made(queue_of_workers(sampled=True))
    predicted = diagnose(trace)
    monkeypatch.setattr(trace_diagnosis, "with_gains", lambda _file, findings: findings)

    bounded = diagnose(trace)

    assert predicted.verdict == bounded.verdict
    assert [one.kind for one in predicted.findings] == [one.kind for one in bounded.findings]
    assert [one.severity for one in predicted.findings] == [
        one.severity for one in bounded.findings
    ]


def test_the_same_trace_gives_the_same_figures(made: Any) -> None:
    trace = made(queue_of_workers(sampled=True))

    assert diagnose(trace).to_json() == diagnose(trace).to_json()


def queue_for_permits(users: int = 6, permits: int = 2) -> TraceBuilder:
    """Return threads that sleep with a permit in turns, as many at a time as there are permits."""
    rounds, cycle = 40, users // permits * PERMIT_HELD
    end = THINK + rounds * cycle
    builder = TraceBuilder(
        meta={"python": {"gil": False}, "machine": {"cores": 8}}, duration_ns=end + 2 * THINK
    )
    site = builder.add_frame("Pool.use", "/src/pool.py", 12)
    stack = builder.add_stack(site)
    lock = builder.add_lock("threading.Semaphore", name="slots", site=site)
    for place in range(users):
        first = THINK + place // permits * PERMIT_HELD
        last = first + (rounds - 1) * cycle + PERMIT_HELD
        thread = builder.add_thread(f"user-{place}", end_ns=last + THINK, cpu_ns=rounds * THINK)
        waited = 0
        for turn in range(rounds):
            start = first + turn * cycle
            asked = start - cycle + PERMIT_HELD + THINK if turn else THINK
            if asked < start:
                builder.add_wait(lock, thread, asked, start, stack=stack)
                waited += start - asked
            builder.add_hold(
                lock, thread, start, start + PERMIT_HELD, site=site, stack=stack, waiters=1
            )
            for moment in range(start, start + PERMIT_HELD, PERMIT_HELD // 4):
                builder.add_state(moment, thread, int(State.BLOCKED), call=Call.SLEEP)
        builder.add_counter(
            lock,
            thread,
            acquires=rounds,
            hold_histogram=[rounds] + [0] * 31,
            contended=rounds,
            hold_ns=rounds * PERMIT_HELD,
            wait_ns=waited,
            park_ns=waited,
        )
    return builder


def test_a_higher_limit_is_predicted_for_as_many_permits_as_it_names(made: Any) -> None:
    (finding, *_) = diagnose(made(queue_for_permits())).findings
    remedy = next(one for one in finding.remedies if one.kind == "raise")

    assert finding.kind == "capacity-limit"
    assert "Raise the limit to 6," in remedy.text  # one for each
    assert remedy.basis == "simulated"
    assert remedy.speedup == pytest.approx(3 * PERMIT_HELD / (PERMIT_HELD + THINK), rel=0.1)
    assert finding.remedies[0] is remedy
