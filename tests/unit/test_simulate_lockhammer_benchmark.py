"""The harness that judges the simulator: it hides what it says it hides."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.simulate import POLICIES, LockCosts, Machine
from contention_lab.simulate.cost_fit import cycle_ns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PATH = Path(__file__).parents[1] / "benchmarks" / "lockhammer.py"
TRUE = LockCosts(release_ns=0.0, transfer_ns=80.0, handoff_ns=((1.0, 80.0), (7.0, 300.0)))
RATIOS = ((0, 0), (200, 1000), (1000, 5000))


@pytest.fixture(scope="module")
def harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lockhammer", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lockhammer"] = module
    spec.loader.exec_module(module)
    return module


def rows(host: str, lock: str, kind: str, target_factor: float = 1.0) -> list[str]:
    """Return CSV rows of a simulated host; `target_factor` falsifies the row to be predicted."""
    policy, machine = POLICIES[kind], Machine.ideal(8)
    found = []
    for hold, think in RATIOS:
        factor = target_factor if (hold, think) == RATIOS[-1] else 1.0
        for threads in (1, 2, 4, 8):
            cycle = cycle_ns(policy, TRUE, machine, hold, think, threads)
            found.append(f"{host},{lock},{hold},{think},{threads},{cycle * factor:.2f}")
    return found


def judged(harness: ModuleType, folder: Path, data: Sequence[str], capsys: Any) -> dict[str, Any]:
    file = folder / "data.csv"
    file.write_text("host,lock,hold_ns,think_ns,threads,ns_per_access\n" + "\n".join(data))
    assert harness.main([str(file), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_host_whose_locks_keep_the_rules_is_predicted(
    harness: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [*rows("a", "ticket_spinlock", "ticket"), *rows("b", "swap_mutex", "test-and-set")]

    found = judged(harness, tmp_path, data, capsys)

    assert found["classes"]["spinning"]["median_error"] < 0.03
    assert found["classes"]["spinning"]["points"] == 6  # two, four and eight threads of each
    assert set(found["hosts"]) == {"a", "b"}
    assert found["locks"][0]["median_error_across_hosts"] is None


def test_what_is_to_be_predicted_does_not_reach_the_calibration(
    harness: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honest, falsified = (
        judged(harness, tmp_path, rows("a", "queued_spinlock", "mcs", factor), capsys)
        for factor in (1.0, 2.0)
    )

    assert honest["locks"][0]["costs"] == falsified["locks"][0]["costs"]
    assert honest["locks"][0]["median_error"] < 0.03
    assert falsified["locks"][0]["median_error"] == pytest.approx(0.5, abs=0.03)


def test_locks_without_exclusion_are_left_out_and_unknown_ones_named(
    harness: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data.csv"
    data = [*rows("a", "empty", "mcs"), *rows("a", "new_lock", "mcs")]
    file.write_text("host,lock,hold_ns,think_ns,threads,ns_per_access\n" + "\n".join(data))

    assert harness.main([str(file)]) == 1
    complaint = capsys.readouterr().err

    assert "of no known kind: new_lock" in complaint
    assert "no lock has the rows" in complaint
