"""Remedies of a diagnosis: predicted where the trace tells enough, bounds where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from workers_scene import HOLD, THINK, queue_of_workers

from contention_lab.diagnosis import diagnose, trace_diagnosis
from contention_lab.trace import load

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace
    from contention_lab.trace.builder import TraceBuilder


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
