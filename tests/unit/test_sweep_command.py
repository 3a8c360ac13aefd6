"""A swept command: its words, the figure it is measured by, and its page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from contention_lab.report import command_page
from contention_lab.sweep.command import Command
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.figure import Figure


def swept(*words: str, recorded: bool = False) -> Command:
    return Command(words, (1, 2), 1, Figure(), recorded)


def test_the_count_goes_wherever_it_is_asked_for_and_other_braces_stay() -> None:
    command = swept("run", "-j{threads}", "--name={x}", "{threads}")

    assert command.words_at(8) == ["run", "-j8", "--name={x}", "8"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("python3.11", "tools/bench.py", "{threads}"), "bench"),
        (("python", "-m", "json.tool", "{threads}"), "json.tool"),
        (("python", "-c", "print({threads})"), "python"),
        (("./server-{threads}", "x"), "server"),
        (("make", "-j{threads}"), "make"),
    ],
)
def test_a_sweep_is_called_after_its_program(words: tuple[str, ...], name: str) -> None:
    assert swept(*words).name == name


def test_a_command_without_a_place_for_the_count_is_refused() -> None:
    with pytest.raises(SweepError, match=r"no \{threads\} in the command"):
        swept(sys.executable, "x.py").check()


def test_a_command_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(SweepError, match="no-such-program-here: command not found"):
        swept("no-such-program-here", "{threads}").check()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sh", "-c", "echo {threads}"), "needs a command in Python"),
        ((sys.executable, "-X", "dev", "x.py", "{threads}"), "without options of the interpreter"),
    ],
)
def test_only_a_python_program_can_be_recorded(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(SweepError, match=said):
        swept(*words, recorded=True).check()


def test_a_recorded_command_keeps_its_interpreter_and_its_arguments() -> None:
    command = swept("/opt/python3.12", "bench.py", "--jobs", "{threads}", recorded=True)

    assert command.recorded_at(4, Path("t.clt")) == [
        *("/opt/python3.12", "-m", "contention_lab", "record", "-o", "t.clt"),
        *("bench.py", "--jobs", "4"),
    ]


def test_the_wall_clock_is_the_figure_unless_told_otherwise() -> None:
    assert Figure().value(1.5, "took 3 s") == 1.5


@pytest.mark.parametrize(
    ("pattern", "output", "value"),
    [
        (r"took ([0-9.]+) s", "took 9 s\ntook 2.5 s\n", 2.5),
        (r"total: (\S+)", "total: 8:12", 492.0),
        (r"total: (\S+)", "total: 1:02:03.5", 3723.5),
        (r"[0-9.]+$", "in all 42", 42.0),
        (r"([\d,.]+) ms", "1,234,567.5 ms", 1234567.5),
    ],
)
def test_a_time_is_read_from_the_last_match(pattern: str, output: str, value: float) -> None:
    assert Figure("time", pattern).value(0.1, output) == value


def test_output_without_a_match_is_said_with_its_end() -> None:
    with pytest.raises(SweepError, match=r"no match for --rate-regex 'x \(\\d\)': b \| c \| d"):
        Figure("rate", r"x (\d)").value(0.1, "a\nb\n\nc\nd\n")
    with pytest.raises(SweepError, match="it is empty"):
        Figure("rate", r"x (\d)").value(0.1, "")


@pytest.mark.parametrize("text", ["fast", "0", "-1", "nan", "inf", ""])
def test_a_match_that_is_no_positive_number_is_refused(text: str) -> None:
    with pytest.raises(SweepError, match="is not a number above 0"):
        Figure("rate", r"rate=(.*)").value(0.1, f"rate={text}")


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(SweepError, match="--time-regex '\\(': missing \\)"):
        Figure("time", "(").check()


def result(kind: str = "time", **changes: Any) -> dict[str, Any]:
    load = {"load1": 0.1, "cpu_some_avg10": 0.0, "steal_share": 0.0, "others_share": 0.0}
    points = [
        {"threads": n, "values": [8.0 / n, 8.2 / n], "median": 8.1 / n, "wall_s": 9.0 / n,
         "cpu_s": 8.0, "trace": None}
        for n in (1, 2, 4, 8)
    ]  # fmt: skip
    found: dict[str, Any] = {
        "schema": 1,
        "name": "bench",
        "command": "python bench.py '{threads}' '<script>alert(1)</script>'",
        "figure": {"source": "time" if kind == "time" else "rate", "pattern": "took (<b>.*)"},
        "repeats": 2,
        "started": "2026-11-30T14:00:00+00:00",
        "wall_s": 30.0,
        "order_seed": 1,
        "package_version": "0.1.0",
        "python": {"version": "3.11.7", "implementation": "CPython", "gil": True},
        "machine": {"cores": 8, "load_before": load, "load_during": load, "warnings": []},
        "complete": True,
        "missing": [],
        "points": points,
        "fit": {
            "kind": kind,
            "work": "fixed",
            "unit": "s",
            "chosen": "amdahl",
            "verdict": {"kind": "scales", "summary": "It scales.", "lines": ["Up to 8."]},
            "notes": ["Nothing is known of <i>more</i>."],
            "predictions": [{"threads": 16.0, "value": 0.6, "low": 0.5, "high": 0.9}],
        },
        "law_lines": ["amdahl 1.0 %"],
        "curves": {
            "ideal": [[1.0, 8.1], [16.0, 0.6]],
            "law": [[1.0, 8.1], [16.0, 0.7]],
        },
    }
    return {**found, **changes}


def test_the_page_has_measured_points_ideal_law_and_forecast() -> None:
    page = re.sub(r"[\u00a0\u202f\u2009]", " ", command_page(result()))

    for text in ("It scales.", "8.10 s", "ideal", "amdahl law", "forecast", "500 ms to 900 ms"):
        assert text in page, text


def test_a_page_of_rates_says_so() -> None:
    page = command_page(result("throughput"))

    assert "Rate against threads" in page
    assert "8.10/s" in page


def test_what_comes_from_the_command_is_escaped() -> None:
    page = command_page(result())

    assert "<script>alert" not in page
    assert "took (<b>" not in page
    assert "<i>more" not in page


def test_missing_runs_are_said_at_the_top() -> None:
    page = command_page(result(missing=["bench at 8 threads, run 1: boom", "another"]))

    assert "Not all runs are there: bench at 8 threads, run 1: boom, and 1 more." in page


def test_the_page_is_the_same_for_the_same_result() -> None:
    assert command_page(result()) == command_page(json.loads(json.dumps(result())))
