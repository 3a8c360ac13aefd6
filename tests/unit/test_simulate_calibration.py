"""Calibration: measurements reach the costs, files keep them, a busy host is refused.

The host is a fake one, itself simulated, whose costs are known.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from contention_lab.cli import calibrate, simulate
from contention_lab.simulate import host_probe
from contention_lab.simulate.calibration import (
    Calibration,
    CalibrationError,
    calibration_here,
    default_calibration,
    default_path,
    host_facts,
    load,
    save,
    slice_of_linux_ns,
)
from contention_lab.simulate.cost_fit import cycle_ns
from contention_lab.simulate.host_probe import KINDS, measured_calibration, thread_counts
from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES
from contention_lab.sweep import machine_load
from contention_lab.sweep.machine_load import MachineLoad

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TRUE = LockCosts(
    acquire_ns=20.0, release_ns=0.0, transfer_ns=80.0, handoff_ns=((1.0, 80.0), (7.0, 260.0))
)
QUIET = MachineLoad(load1=0.1, cpu_some_avg10=0.0, steal_share=0.0, others_share=0.01)
BUSY = replace(QUIET, others_share=0.6)


class FakeHost:
    """A host whose locks are simulated and whose scheduler is a list of numbers."""

    def __init__(self) -> None:
        self.contests: list[tuple[int, int, float, float]] = []

    def contend(
        self,
        kind: int,
        cpus: Sequence[int],
        hold_ns: float,
        think_ns: float,
        operations: int,
        limit_ns: int,
    ) -> list[tuple[int, int]]:
        self.contests.append((kind, len(cpus), hold_ns, think_ns))
        policy = POLICIES[KINDS[kind]]
        cycle = cycle_ns(policy, TRUE, Machine.ideal(8), hold_ns, think_ns, len(cpus), 40)
        return [(operations, round(operations * cycle))] * len(cpus)

    def transfer(self, cpu: int, other_cpu: int, rounds: int, limit_ns: int) -> float:
        if (cpu, other_cpu) == (0, 1):
            raise TimeoutError("once")
        return 80.0

    def handover(self, cpu: int, other_cpu: int, rounds: int, limit_ns: int) -> float:
        return 3_000.0

    def wakeups(
        self, cpu: int, other_cpu: int, rounds: int, limit_ns: int
    ) -> tuple[list[int], list[int]]:
        latency = 4_000 if cpu == other_cpu else 12_000
        return [latency, latency, latency, 10**9], [1_500, 1_500, 1_500, 10**9]

    def slices(self, cpu: int, other_cpu: int, most: int, limit_ns: int) -> list[int]:
        return [2_800_000] * 9

    def refused_sleep(self, rounds: int) -> float:
        return 500.0


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    host = FakeHost()
    host.transfer = lambda *_: 80.0  # type: ignore[method-assign]
    return measured_calibration(range(8), probe=host)


def test_the_scheduler_is_told_from_what_was_timed(calibration: Calibration) -> None:
    machine = calibration.machine

    assert machine.cores == 8
    assert machine.slice_ns == 2_800_000
    assert machine.switch_ns == pytest.approx(3_000 - 2 * 500)
    assert machine.wake_other_ns == pytest.approx(12_000)
    assert machine.wake_same_ns == pytest.approx(4_000 - machine.switch_ns)
    assert calibration.transfer_ns == 80.0
    assert calibration.costs["parking"].wake_call_ns == pytest.approx(1_500)
    assert calibration.costs["parking"].park_ns == pytest.approx(500)


@pytest.mark.parametrize("kind", ["ticket", "mcs", "test-and-set"])
def test_hand_offs_are_told_by_number_of_waiters(calibration: Calibration, kind: str) -> None:
    costs = calibration.costs[kind]

    assert costs.acquire_ns == pytest.approx(20.0, rel=0.1)
    assert costs.table(8)[6] == pytest.approx(TRUE.table(8)[6], rel=0.2)


def test_hand_offs_all_waiters_watch_go_on_growing_beyond_what_was_measured(
    calibration: Calibration,
) -> None:
    ticket, mcs = (calibration.costs[kind].table(64) for kind in ("ticket", "mcs"))

    assert ticket[60] - ticket[20] == pytest.approx(40 * 80.0 / 2, rel=0.01)
    assert mcs[60] == mcs[20]


def test_several_ratios_are_measured_with_one_thread_up_to_one_for_each_cpu() -> None:
    host = FakeHost()
    host_probe.measured_lock(host, "mcs", range(6))

    assert {(hold, think) for _, _, hold, think in host.contests} == {
        (0.0, 0.0),
        (200.0, 1000.0),
        (1000.0, 1000.0),
    }
    assert {threads for _, threads, _, _ in host.contests} == {1, 2, 4, 6}
    assert thread_counts(1) == [1]
    assert thread_counts(8) == [1, 2, 4, 8]


def test_a_host_with_one_core_has_costs_too() -> None:
    found = measured_calibration([3], probe=FakeHost())

    assert found.machine.wake_other_ns == found.machine.wake_same_ns
    assert set(found.costs) == set(KINDS)


def test_threads_that_never_run_together_are_said() -> None:
    with pytest.raises(CalibrationError, match="too busy to be measured"):
        measured_calibration([0, 1], probe=FakeHost())


def test_a_file_says_what_was_measured(calibration: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "host.json"
    save(calibration, file)

    assert load(file) == calibration
    assert [path.name for path in file.parent.iterdir()] == ["host.json"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "no calibration"),
        ('{"schema": 99}', "schema 99"),
        ('{"schema": 1}', "no calibration"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)

    with pytest.raises(CalibrationError, match=complaint):
        load(file)


def test_costs_that_are_no_times_are_refused(calibration: Calibration) -> None:
    found = json.loads(json.dumps(calibration.to_json()))
    found["locks"]["mcs"]["park_ns"] = -1.0

    with pytest.raises(CalibrationError, match="not negative"):
        Calibration.from_json(found)


def test_only_this_hosts_calibration_is_used(
    calibration: Calibration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert calibration_here(2).is_default

    save(calibration, default_path())
    assert calibration_here(2).measured_at == calibration.measured_at

    save(replace(calibration, host={**host_facts(2), "processor": "other"}), default_path())
    assert calibration_here(2).is_default


def test_every_kind_of_lock_has_costs_without_a_measurement() -> None:
    found = default_calibration(4)

    for policy in POLICIES.values():
        assert found.costs_of(policy).acquire_ns > 0
    assert found.machine.cores == 4
    assert found.machine_with(32).cores == 32
    assert [slice_of_linux_ns(cores) for cores in (1, 2, 4, 8, 64)] == [
        0.75e6 * factor for factor in (1, 2, 3, 4, 4)
    ]


def invoke(command: Any, *words: str) -> Any:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def test_a_slice_that_ended_at_a_tick_is_told_from_the_promised_one() -> None:
    measured = replace(default_calibration(2), machine=Machine(2, slice_ns=4e6))
    exact = replace(measured, machine=Machine(2, slice_ns=1.5e6))

    ticking, running = measured.machine_with(8), exact.machine_with(8)

    assert (ticking.cores, ticking.slice_ns, ticking.tick_ns) == (8, 1.5e6, 4e6)
    assert (running.slice_ns, running.tick_ns) == (1.5e6, 0.0)


def test_a_busy_machine_is_refused_unless_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, calibration: Calibration
) -> None:
    monkeypatch.setattr(machine_load, "observed_load", lambda: BUSY)
    monkeypatch.setattr(
        host_probe,
        "measured_calibration",
        lambda *_, warnings, **__: replace(calibration, warnings=tuple(warnings)),
    )
    file = tmp_path / "host.json"

    refused = invoke(calibrate.command, "--output", str(file))
    told = invoke(calibrate.command, "--output", str(file), "--anyway")

    assert refused.exit_code == 1
    assert "busy machine" in refused.stderr
    assert "--anyway" in refused.stderr
    assert told.exit_code == 0
    assert "busy machine" in load(file).warnings[0]


def test_a_quiet_machine_is_measured_and_the_result_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, calibration: Calibration
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine_load, "observed_load", lambda: QUIET)
    here = replace(calibration, host=host_facts(8))
    monkeypatch.setattr(host_probe, "measured_calibration", lambda *_, **__: here)

    measured = invoke(calibrate.command)
    used = invoke(
        simulate.command,
        *("--lock", "mcs", "--hold-ns", "200", "--think-ns", "900", "--threads", "1,4", "--json"),
    )

    assert measured.exit_code == 0
    assert "wake-up, other core" in measured.stdout
    found = json.loads(used.stdout)
    assert found["calibration"]["measured_at"] == calibration.measured_at
    assert found["costs"]["handoff_ns"] == [
        list(point) for point in calibration.costs["mcs"].handoff_ns
    ]
