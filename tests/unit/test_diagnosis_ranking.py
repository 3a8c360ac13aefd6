"""Which findings are said: one story per lock, the most severe first."""

from __future__ import annotations

from contention_lab.diagnosis.finding import AccusedLock, Finding
from contention_lab.diagnosis.ranking import ranked, verdict

LOCK = AccusedLock("cache", "threading.Lock", None, 1)
OTHER = AccusedLock("queue", "threading.Lock", None, 1)


def _finding(
    kind: str,
    severity: float,
    lock: AccusedLock | None = None,
    acquits: tuple[AccusedLock, ...] = (),
) -> Finding:
    return Finding(kind, severity, kind, lock, (), (), {}, (), acquits)


def _kinds(*found: Finding, together: set[tuple[str, str]] | None = None) -> list[str]:
    return [finding.kind for finding in ranked(found, together=together or set())]


def test_the_most_severe_is_said_first() -> None:
    assert _kinds(_finding("a", 0.2), _finding("b", 0.5)) == ["b", "a"]


def test_of_two_findings_about_a_lock_the_more_specific_stays_however_severe() -> None:
    assert _kinds(_finding("specific", 0.2, LOCK), _finding("general", 0.9, LOCK)) == ["specific"]


def test_findings_about_different_locks_stay() -> None:
    assert _kinds(_finding("a", 0.2, LOCK), _finding("b", 0.1, OTHER)) == ["a", "b"]


def test_kinds_that_belong_together_are_both_said_of_a_lock() -> None:
    found = (_finding("a", 0.2, LOCK), _finding("b", 0.9, LOCK))
    assert _kinds(*found, together={("a", "b")}) == ["b", "a"]
    assert _kinds(*found, together={("b", "a")}) == ["a"]


def test_an_acquitted_lock_is_not_accused_by_others() -> None:
    found = (_finding("serialised", 0.9, LOCK), _finding("gil", 0.4, None, (LOCK,)))
    assert _kinds(*found) == ["gil"]


def test_an_acquitted_lock_hides_no_finding_that_acquits_it_too() -> None:
    found = (
        _finding("held", 0.9, LOCK),
        _finding("masked", 0.3, LOCK, (LOCK,)),
        _finding("serialised", 0.5, LOCK),
    )
    assert _kinds(*found) == ["masked"]


def test_the_verdict_is_the_first_that_limits_the_program() -> None:
    assert verdict(ranked([_finding("idle-wait", 0.0), _finding("a", 0.1)])) == "a"


def test_waiting_for_work_is_the_verdict_where_nothing_limits() -> None:
    assert verdict([_finding("lock-order-risk", 0.0), _finding("idle-wait", 0.0)]) == "idle-wait"


def test_a_program_without_findings_is_healthy() -> None:
    assert verdict([]) == "healthy"
    assert verdict([_finding("note", 0.0)]) == "healthy"
