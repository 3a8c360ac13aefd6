"""The verdict on a sweep, from plain points and made-up diagnoses."""

from __future__ import annotations

from typing import Any

import pytest

from contention_lab.diagnosis import (
    AccusedLock,
    Diagnosis,
    Finding,
    Party,
    Remedy,
    most_telling,
    sweep_verdict,
)
from contention_lab.scaling import fit_scaling
from contention_lab.trace import Frame

BACKWARD = Frame("GlobalLock.backward", "/src/client.py", 39, 35)
REGISTER = Frame("GlobalLock.register", "/src/client.py", 33, 30)
SERVER = AccusedLock("autodiff server", "SpinLock", Frame("__init__", "/src/server.py", 31, 30), 1)


def diagnosis(kind: str, severity: float = 0.8, **evidence: float) -> Diagnosis:
    if kind == "healthy":
        return Diagnosis("healthy", "No lock limits this program.", (), {})
    finding = Finding(
        kind=kind,
        severity=severity,
        summary="7 of 8 threads spin.",
        lock=SERVER,
        victims=(Party(REGISTER, (), 9.0, 0.9), Party(BACKWARD, (), 1.0, 0.1)),
        culprits=(Party(BACKWARD, (), 9.3, 0.93),),
        evidence={"wait_s": 10.0, "hand_off_s": 0.0, "spin_s": 0.0, **evidence},
        remedies=(Remedy("park", "Use a lock that parks.", None, 1.0, 8.0),),
    )
    return Diagnosis(kind, finding.summary, (finding,), {})


def points(
    walls: dict[int, float], variant: str = "global-spinlock", holds: dict[int, float] | None = None
) -> list[dict[str, Any]]:
    return [
        {
            "variant": variant,
            "threads": threads,
            "work": 32,
            "wall_s": {"median": wall, "low": wall, "high": wall, "runs": [wall]},
            "hold_s": (holds or {}).get(threads, 0.0),
        }
        for threads, wall in walls.items()
    ]


def test_the_first_line_says_which_lock_who_holds_who_waits_and_how_it_grows() -> None:
    verdict = sweep_verdict(
        points({1: 0.28, 2: 0.30, 32: 6.1}), diagnosis("serialised-by-lock"), unit="trainings"
    )

    assert verdict.kind == "serialised-by-lock"
    assert verdict.summary == (
        "`autodiff server` (SpinLock, made at server.py:31) serialises the batch: "
        "`GlobalLock.backward` holds it for 93 % of the waiting, `GlobalLock.register` and "
        "`GlobalLock.backward` wait; 32 trainings take 0.28 s on 1 thread and 6.1 s on 32 "
        "(21.8 times as long)."
    )


def test_a_collapse_is_called_one() -> None:
    verdict = sweep_verdict(points({1: 0.28, 32: 6.1}), diagnosis("spin-collapse"))

    assert verdict.kind == "spin-collapse"
    assert "collapses under its spinning waiters" in verdict.summary
    assert "`GlobalLock.register` and `GlobalLock.backward` spin;" in verdict.summary


def test_points_may_come_in_any_order() -> None:
    walls = {32: 6.1, 1: 0.28, 2: 0.30}
    ordered = dict(sorted(walls.items()))
    expected = sweep_verdict(points(ordered), diagnosis("spin-collapse"))

    assert sweep_verdict(points(walls), diagnosis("spin-collapse")) == expected


def test_evidence_comes_before_what_to_do() -> None:
    walls = {1: 0.28, 2: 0.6, 4: 1.3, 8: 2.6, 32: 6.1}
    verdict = sweep_verdict(
        points(walls, holds={1: 0.13, 32: 5.5}),
        diagnosis("spin-collapse", hand_off_s=2.0),
        fit_scaling(list(walls), list(walls.values())),
        threads=32,
    )

    first, hand_off, growth, bound, law, step = verdict.lines
    assert first == "At 32 threads: 7 of 8 threads spin."
    assert hand_off.startswith("Of all the waiting, 20 % passed while nobody held it")
    assert "holds the lock for 0.13 s on 1 thread and for 5.5 s on 32" in growth
    assert "no thread count can beat 0.13 s" in bound
    assert law.startswith("The fitted law (mean error ")
    assert step == "Next: Use a lock that parks. (With 32 threads at most 8.0 times as fast.)"


def test_a_fit_may_be_an_object_plain_data_or_a_list_of_all() -> None:
    walls = {1: 0.28, 2: 0.6, 4: 1.3, 8: 2.6}
    fit = fit_scaling(list(walls), list(walls.values()))
    named = {"variant": "global-spinlock", **fit.to_json()}
    told = diagnosis("spin-collapse")
    expected = sweep_verdict(points(walls), told, fit)

    for other in (fit.to_json(), named, [named], {"global-spinlock": fit}):
        assert sweep_verdict(points(walls), told, other) == expected
    nothing = sweep_verdict(points(walls), told, [{**named, "variant": "other"}])
    assert nothing == sweep_verdict(points(walls), told)


@pytest.mark.parametrize(
    ("spin_s", "cores", "held_s", "kind"),
    [
        (9.0, 2, 5.5, "spin-collapse"),
        (0.1, 2, 5.5, "serialised-by-lock"),  # they park
        (9.0, 64, 5.5, "serialised-by-lock"),  # a CPU for each
        (9.0, None, 5.5, "serialised-by-lock"),
        (9.0, 2, 0.15, "serialised-by-lock"),  # the holder is not slowed
    ],
)
def test_holds_that_grow_with_spinners_show_a_collapse_that_a_trace_could_not(
    spin_s: float, cores: int | None, held_s: float, kind: str
) -> None:
    verdict = sweep_verdict(
        points({1: 0.28, 32: 6.1}, holds={1: 0.13, 32: held_s}),
        diagnosis("serialised-by-lock", spin_s=spin_s),
        cores=cores,
    )

    assert verdict.kind == kind


def test_a_batch_that_scales_is_not_accused() -> None:
    verdict = sweep_verdict(
        points({1: 0.55, 2: 0.29, 32: 0.40}, "thread-local"),
        diagnosis("healthy"),
        unit="trainings",
    )

    assert verdict.kind == "healthy"
    assert verdict.summary == (
        "No lock limits the batch; 32 trainings take 0.55 s on 1 thread and 0.40 s on 32 "
        "(1.4 times as fast), at best 0.29 s on 2."
    )


def test_a_slowdown_that_no_lock_explains_is_said_to_be_that() -> None:
    verdict = sweep_verdict(points({1: 0.55, 32: 1.40}), diagnosis("healthy"))

    assert verdict.kind == "healthy"
    assert verdict.summary.startswith(
        "More threads make the batch slower, but no recorded lock explains it; "
    )


def test_a_batch_that_does_not_change_is_called_the_same() -> None:
    verdict = sweep_verdict(points({1: 0.55, 32: 0.56}), diagnosis("healthy"))

    assert verdict.summary.endswith("0.55 s on 1 thread and 0.56 s on 32 (the same).")


def test_one_thread_count_shows_no_growth() -> None:
    verdict = sweep_verdict(points({8: 0.55}), None)

    assert verdict.summary.endswith("take 0.55 s on 8 threads, the only thread count measured.")
    assert verdict.lines == ()


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="measure at least one"):
        sweep_verdict([], None)


def test_variants_are_compared_at_the_most_threads_they_share() -> None:
    both = [
        *points({1: 0.28, 8: 3.0, 32: 6.1}),
        *points({1: 0.55, 8: 0.33}, "thread-local"),
        *points({1: 0.55, 8: 0.56}, "global-mutex"),
    ]
    verdict = sweep_verdict(
        both,
        {
            "global-spinlock": diagnosis("spin-collapse"),
            "thread-local": diagnosis("healthy"),
            "global-mutex": diagnosis("serialised-by-lock"),
        },
        unit="trainings",
    )

    assert verdict.kind == "spin-collapse"
    assert verdict.summary.startswith(
        "With 8 threads `thread-local` takes 0.33 s for 32 trainings and `global-spinlock` 3.0 s "
        "(9.1 times as long): `autodiff server` (SpinLock, made at server.py:31) collapses"
    )
    order = [line.split("`")[1] for line in verdict.lines[:3]]
    assert order == ["thread-local", "global-mutex", "global-spinlock"]
    assert verdict.lines[0].startswith("`thread-local`: 0.33 s with 8 threads; ")
    assert verdict.lines[-1].startswith("Next: Use a lock that parks. (")


def test_variants_without_a_thread_count_in_common_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="in common"):
        sweep_verdict([*points({1: 0.3}), *points({2: 0.3}, "channel")], None)


def test_the_most_telling_point_has_the_most_severe_finding_at_the_most_threads() -> None:
    diagnoses = {
        1: diagnosis("healthy"),
        8: diagnosis("spin-collapse", 0.9),
        16: diagnosis("spin-collapse", 0.9),
        32: diagnosis("spin-collapse", 0.7),
    }

    assert most_telling(diagnoses) == 16
    assert most_telling({1: diagnosis("healthy"), 2: diagnosis("healthy")}) == 2
    assert most_telling({}) is None
