"""From measured runs and hand-made traces to a result: medians, holds, bounds, what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.sweep.conclusion import conclude
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.machine_load import MachineLoad
from contention_lab.sweep.plan import Point, Run
from contention_lab.sweep.runner import Outcome
from contention_lab.sweep.scenario import Expectation, Scenario, Variants
from contention_lab.trace import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
QUIET = MachineLoad(load1=0.0, cpu_some_avg10=0.0, steal_share=0.0, others_share=0.0)


def scenario(folder: Path, **changes: Any) -> Scenario:
    plain = Scenario(
        path=folder / "bank.toml",
        name="bank",
        title="One vault",
        story="",
        workload="bank.py",
        unit="transfers",
        parameters={"transfers": 10},
        quick={},
        threads=(1, 2, 4, 8),
        repeats=3,
        variants=None,
        expectations={"": Expectation("flat", ("serialised-by-lock",))},
    )
    return replace(plain, **changes)


def measured(wall_s: float, **changes: Any) -> dict[str, Any]:
    return {
        "wall_s": wall_s,
        "cpu_s": wall_s / 2,
        "work": 10,
        "losses": ["0x1p+0"],
        "voluntary_switches": 4,
        "involuntary_switches": 2,
        "blas": [],
        **changes,
    }


def write_trace(path: Path, threads: int, hold_ms: int) -> None:
    """Write a trace of threads that take turns holding one vault; a second lock is shorter held."""
    builder = TraceBuilder(duration_ns=threads * hold_ms * MS)
    site = builder.add_frame("Bank.pay", "/bank.py", 7)
    stack = builder.add_stack(site)
    vault = builder.add_lock("Mutex", name="vault")
    door = builder.add_lock("Mutex", name="door")
    tellers = [builder.add_thread(f"teller {index}") for index in range(threads)]
    for turn, teller in enumerate(tellers):
        start, end = turn * hold_ms * MS, (turn + 1) * hold_ms * MS
        builder.add_hold(vault, teller, start, end, site=site, stack=stack)
        builder.add_hold(door, teller, start, start + 1, site=site, stack=stack)
        if turn:
            builder.add_wait(
                vault, teller, 0, start, stack=stack, holder=tellers[0], holder_site=site,
                park_ns=start,
            )  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    builder.write(path)


def outcome(results: dict[Run, dict[str, Any]], failures: dict[Run, str] | None = None) -> Outcome:
    return Outcome(
        results=results,
        failures=failures or {},
        interrupted=False,
        seed=7,
        started=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        wall_s=12.5,
        load_before=QUIET,
        load_during=QUIET,
    )


def whole_sweep(folder: Path) -> dict[Run, dict[str, Any]]:
    results = {}
    for threads, hold_ms in ((1, 60), (2, 30), (4, 15), (8, 10)):
        point = Point("bank", threads)
        write_trace(folder / point.trace_name, threads, hold_ms)
        for repeat, wall_s in enumerate((0.07, 0.06, 0.09)):
            results[Run(point, repeat)] = measured(wall_s)
        results[Run(point, None)] = measured(0.065)
    return results


def test_a_point_has_the_median_and_range_of_its_timed_runs(tmp_path: Path) -> None:
    result = conclude(scenario(tmp_path), outcome(whole_sweep(tmp_path)), tmp_path).result

    point = result["points"][1]
    assert point["wall_s"] == {
        "median": 0.07,
        "low": 0.06,
        "high": 0.09,
        "runs": [0.07, 0.06, 0.09],
    }
    assert point["traced_wall_s"] == 0.065
    assert point["cpu_s"] == pytest.approx(0.035)
    assert (point["voluntary_switches"], point["involuntary_switches"]) == (4, 2)


def test_thread_time_and_holds_come_from_the_trace(tmp_path: Path) -> None:
    points = conclude(scenario(tmp_path), outcome(whole_sweep(tmp_path)), tmp_path).result["points"]

    assert [point["hold_s"] for point in points] == pytest.approx([0.06, 0.06, 0.06, 0.08])
    parked = [point["thread_s"]["park"] for point in points]
    assert parked == pytest.approx([0.0, 0.03, 0.015 * (1 + 2 + 3), 0.01 * 28])


def test_the_bound_is_the_hold_time_with_one_thread(tmp_path: Path) -> None:
    (bound,) = conclude(scenario(tmp_path), outcome(whole_sweep(tmp_path)), tmp_path).result[
        "bounds"
    ]

    assert bound["lock"] == "vault"
    assert bound["serial_hold_s"] == pytest.approx(0.06)
    assert "vault is held for 0.06 s" in bound["text"]


def test_the_result_is_on_disk_as_json_and_says_what_was_run(tmp_path: Path) -> None:
    conclusion = conclude(scenario(tmp_path), outcome(whole_sweep(tmp_path)), tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())

    assert result == json.loads(json.dumps(conclusion.result))
    assert result["scenario"]["expect"] == {
        "all": {"shape": "flat", "verdict": ["serialised-by-lock"]}
    }
    assert (result["order_seed"], result["wall_s"]) == (7, 12.5)
    assert result["started"] == "2030-01-02T03:04:05+00:00"
    assert result["machine"]["warnings"] == []
    assert result["observed"][0]["as_expected"]
    assert result["verdict"]["lines"][0] == result["verdict"]["summary"]
    assert "One vault" in conclusion.report.read_text()


def test_a_point_without_its_traced_run_is_missing_and_the_reason_is_said(tmp_path: Path) -> None:
    results = whole_sweep(tmp_path)
    del results[Run(Point("bank", 8), None)]
    failures = {Run(Point("bank", 8), None): "the process was killed by SIGKILL"}

    result = conclude(scenario(tmp_path), outcome(results, failures), tmp_path).result

    assert not result["complete"]
    assert [point["threads"] for point in result["points"]] == [1, 2, 4]
    assert result["missing"] == ["bank at 8 threads, traced run: the process was killed by SIGKILL"]


def test_a_point_with_fewer_repeats_is_kept_and_what_it_lacks_is_listed(tmp_path: Path) -> None:
    results = whole_sweep(tmp_path)
    del results[Run(Point("bank", 2), 1)]

    result = conclude(scenario(tmp_path), outcome(results), tmp_path).result

    assert result["missing"] == ["bank at 2 threads, run 2: not run"]
    assert result["points"][1]["wall_s"]["runs"] == [0.07, 0.09]


def test_a_damaged_trace_makes_its_point_missing(tmp_path: Path) -> None:
    results = whole_sweep(tmp_path)
    (tmp_path / Point("bank", 4).trace_name).write_bytes(b"not a trace")

    result = conclude(scenario(tmp_path), outcome(results), tmp_path).result

    (line,) = result["missing"]
    assert line.startswith("bank at 4 threads, traced run: ")
    assert [point["threads"] for point in result["points"]] == [1, 2, 8]


def test_runs_that_give_other_losses_are_reported(tmp_path: Path) -> None:
    results = whole_sweep(tmp_path)
    results[Run(Point("bank", 2), 1)]["losses"] = ["0x1.8p+0"]

    result = conclude(scenario(tmp_path), outcome(results), tmp_path).result

    assert result["machine"]["warnings"] == ["bank: runs gave 2 different sets of losses"]


def test_too_few_thread_counts_give_no_law(tmp_path: Path) -> None:
    results = whole_sweep(tmp_path)

    result = conclude(scenario(tmp_path, threads=(1, 2)), outcome(results), tmp_path).result

    assert result["fits"] == []
    assert len(result["points"]) == 2


def test_an_interrupted_comparison_compares_the_variants_that_share_a_thread_count(
    tmp_path: Path,
) -> None:
    three = scenario(
        tmp_path, threads=(1, 2), variants=Variants("lock", ("a", "b", "c")), repeats=1
    )
    results = {}
    for variant, threads in (("a", 1), ("b", 1), ("c", 2)):
        point = Point(variant, threads)
        write_trace(tmp_path / point.trace_name, threads, 10)
        results |= {Run(point, 0): measured(0.1), Run(point, None): measured(0.1)}

    result = conclude(three, outcome(results), tmp_path).result

    assert [(p["variant"], p["threads"]) for p in result["points"]] == [
        ("a", 1), ("b", 1), ("c", 2),
    ]  # fmt: skip
    assert len(result["missing"]) == 6
    assert "`a`" in result["verdict"]["summary"]
    assert result["scenario"]["parameters"]["lock"] == ["a", "b", "c"]


def test_a_sweep_without_any_point_is_an_error_that_gives_the_first_reason(tmp_path: Path) -> None:
    failures = {Run(Point("bank", 1), 0): "the process exited with status 3"}

    with pytest.raises(SweepError, match="bank at 1 thread, run 1: the process exited"):
        conclude(scenario(tmp_path), outcome({}, failures), tmp_path)
