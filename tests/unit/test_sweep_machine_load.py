"""Load of the machine, read from a hand-made /proc."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from contention_lab.sweep.machine_load import (
    CpuTimes,
    MachineLoad,
    cpu_times,
    load_between,
    load_warnings,
)

if TYPE_CHECKING:
    from pathlib import Path

QUIET = MachineLoad(load1=0.1, cpu_some_avg10=1.0, steal_share=0.0, others_share=0.01)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    hertz = os.sysconf("SC_CLK_TCK")
    jiffies = [int(seconds * hertz) for seconds in (10, 1, 2, 100, 5, 1, 1, 4)]
    (tmp_path / "stat").write_text(f"cpu  {' '.join(map(str, jiffies))} 0 0\ncpu0 1 2 3\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text(
        "some avg10=12.50 avg60=0.68 avg300=0.90 total=8979722\nfull avg10=0.00 total=0\n"
    )
    return tmp_path


def test_cpu_times_separate_busy_idle_and_stolen(proc: Path) -> None:
    times = cpu_times(proc)

    assert times.total_s == pytest.approx(124)
    assert times.busy_s == pytest.approx(15)
    assert times.stolen_s == pytest.approx(4)
    assert times.own_s > 0


def test_what_others_used_is_the_whole_less_our_own(proc: Path) -> None:
    load = load_between(CpuTimes(100, 10, 1, 3), CpuTimes(110, 16, 2, 7), proc)

    assert load.others_share == pytest.approx(0.2)
    assert load.steal_share == pytest.approx(0.1)
    assert load.cpu_some_avg10 == 12.5


def test_a_system_without_proc_has_no_pressure_and_no_shares(tmp_path: Path) -> None:
    times = cpu_times(tmp_path)
    load = load_between(times, times, tmp_path)

    assert (load.cpu_some_avg10, load.steal_share, load.others_share) == (None, 0.0, 0.0)


def test_a_quiet_machine_gives_no_warning() -> None:
    assert load_warnings(QUIET, QUIET) == []


@pytest.mark.parametrize(
    ("before", "during", "complaint"),
    [
        (MachineLoad(0, 0.0, 0.0, 0.5), QUIET, "other programs used 50% of all CPUs before"),
        (QUIET, MachineLoad(9, 90.0, 0.0, 0.3), "other programs used 30% of all CPUs during"),
        (QUIET, MachineLoad(9, 90.0, 0.05, 0.0), "hypervisor withheld 5% of all CPUs during"),
        (MachineLoad(0, 35.0, 0.0, 0.0), None, "tasks waited for a CPU 35 % of ten seconds now"),
    ],
)
def test_a_busy_machine_is_reported(
    before: MachineLoad, during: MachineLoad | None, complaint: str
) -> None:
    (line,) = load_warnings(before, during)

    assert complaint in line


def test_pressure_that_the_sweep_itself_makes_is_no_warning() -> None:
    assert load_warnings(QUIET, MachineLoad(30, 99.0, 0.0, 0.0)) == []
