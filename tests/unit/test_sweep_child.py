"""The process of one run: its answer, and the line it leaves when it does not give one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.sweep.child import RunFailed, run_child

if TYPE_CHECKING:
    from pathlib import Path

HONEST = """
import os, time
from contention_lab.sweep.workload import Measurement

def run(parameters, threads, *, around):
    print("noise on stdout")
    os.write(1, b"more noise, past Python")
    with around():
        time.sleep(0.002)
    losses = ("a", os.environ["OMP_NUM_THREADS"])
    return Measurement(0.25, 0.5, threads * parameters["each"], losses)
"""


def spec(tmp_path: Path, source: str, **changes: Any) -> dict[str, Any]:
    script = tmp_path / "script.py"
    script.write_text(source)
    return {
        "workload": str(script),
        "parameters": {"each": 3},
        "threads": 2,
        "trace": None,
        **changes,
    }


def test_a_run_answers_what_the_workload_measured(tmp_path: Path) -> None:
    result = run_child(spec(tmp_path, HONEST))

    assert (result["wall_s"], result["cpu_s"], result["work"]) == (0.25, 0.5, 6)
    assert result["voluntary_switches"] >= 1
    assert result["involuntary_switches"] >= 0


def test_blas_is_pinned_before_python_starts(tmp_path: Path) -> None:
    assert run_child(spec(tmp_path, HONEST))["losses"] == ["a", "1"]


def test_losses_are_given_to_the_last_bit(tmp_path: Path) -> None:
    source = HONEST.replace('("a", os.environ["OMP_NUM_THREADS"])', "(0.1 + 0.2, 0.3)")
    assert source != HONEST

    assert run_child(spec(tmp_path, source))["losses"] == [(0.1 + 0.2).hex(), (0.3).hex()]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("raise ValueError('no such client')", "status 1: .*ValueError: no such client"),
        ("os._exit(3)", "status 3"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os._exit(0)", "gave no result"),
        ("return Measurement(1, 1, 1)", r"entered `with around\(\):` 0 times"),
    ],
)
def test_a_run_that_fails_says_how_in_one_line(tmp_path: Path, body: str, complaint: str) -> None:
    source = HONEST.replace("    print(", f"    {body}\n    print(")

    with pytest.raises(RunFailed, match=complaint) as caught:
        run_child(spec(tmp_path, source))

    assert "\n" not in str(caught.value)


def test_a_script_that_does_not_compile_is_a_failed_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="SyntaxError"):
        run_child(spec(tmp_path, "def run(:"))
