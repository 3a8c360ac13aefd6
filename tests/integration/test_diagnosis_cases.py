"""Programs with known answers, recorded and diagnosed: a quick choice of them.

All of them are judged by `python tests/cases/judge.py tests/cases`, which takes minutes. Those here
do not depend on how busy the machine is, and each stands for another way to find something.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
sys.path.append(str(TESTS / "cases"))
judge = importlib.import_module("judge")
sidecar = importlib.import_module("sidecar")

AS_THEY_ARE = (
    "async_lock_across_await_report",
    "backpressure_buffer",
    "capacity_limit_thumbnails",
    "healthy_guarded_cycle",
    "held_across_io_shared_connection",
    "import_lock_handlers",
    "load_imbalance_giant",
    "lock_order_deadlock_accounts",
    "pool_self_starvation_stages",
    "self_deadlock_flush",
    "slow_holder_elsewhere_sweeper",
    "writer_starvation_settings",
    "healthy/long_private_hold",
    "healthy/pool_waiting_for_work",
    "healthy/semaphore_roomy",
)
FIXED = (
    "capacity_limit_thumbnails",
    "held_across_io_shared_connection",
    "lock_order_deadlock_accounts",
    "self_deadlock_flush",
)


@pytest.fixture(autouse=True)
def half_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASE_SCALE", "0.5")


def complaints(name: str, variant: int, traces: Path) -> Any:
    case = sidecar.read_case(TESTS / "cases" / f"{name}.json")
    return judge.judged(case, case.truths[variant], 1, sys.executable, traces).judgement.complaints


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_the_diagnosis_is_right(name: str, tmp_path: Path) -> None:
    assert complaints(name, 0, tmp_path) == ()


@pytest.mark.parametrize("name", FIXED)
def test_of_the_fixed_program_it_is_not_said_any_more(name: str, tmp_path: Path) -> None:
    assert complaints(name, 1, tmp_path) == ()
