"""A sweep from the command line to the page, with a workload small enough to wait for."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab

if TYPE_CHECKING:
    from pathlib import Path

BANK = '''
"""Tellers who all need one vault: the batch takes as long however many there are."""

import threading
import time

from contention_lab import Mutex
from contention_lab.sweep.workload import Measurement


def run(parameters, threads, *, around):
    if threads in parameters["crash_at"]:
        raise RuntimeError("the vault is on fire")
    vault = Mutex(name="vault")
    left = [parameters["transfers"]]

    def count_money():
        time.sleep(parameters["hold_s"])

    def teller():
        while True:
            with vault:
                if not left[0]:
                    return
                left[0] -= 1
                count_money()

    tellers = [threading.Thread(target=teller) for _ in range(threads)]
    with around():
        start = time.perf_counter()
        for each in tellers:
            each.start()
        for each in tellers:
            each.join()
        wall_s = time.perf_counter() - start
    return Measurement(wall_s, time.process_time(), parameters["transfers"], ("paid",))
'''

SCENARIO = """
name = "bank"
title = "One vault"
story = "Money is counted with the vault open."
workload = "bank.py"
unit = "transfers"
threads = [1, 2, 4, 8]
repeats = 2

[parameters]
transfers = 20
hold_s = 0.01
crash_at = [0]

[expect]
shape = "flat"
verdict = "held-across-io"
"""


def with_bank(folder: Path) -> Path:
    (folder / "bank.py").write_text(BANK)
    (folder / "bank.toml").write_text(SCENARIO)
    return folder


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return with_bank(tmp_path)


@dataclass(frozen=True)
class Finished:
    answer: subprocess.CompletedProcess[str]
    folder: Path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = with_bank(tmp_path_factory.mktemp("finished"))
    return Finished(lab(folder, "run", "./bank.toml"), folder / "reports" / "bank")


def lab(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "contention_lab", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def result_in(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return content


def test_a_sweep_ends_with_verdict_evidence_and_the_path_of_the_page(finished: Finished) -> None:
    answer, folder = finished.answer, finished.folder

    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "reports/bank/report.html\n"
    result = result_in(folder)
    first, *others = answer.stderr.splitlines()
    assert first == result["verdict"]["lines"][0]
    assert "vault" in first
    assert any(re.match(r"threads +1 +2 +4 +8$", line) for line in others)
    assert others[-1].startswith("next: contention-lab ")
    assert "vault" in (folder / "report.html").read_text()


def test_the_result_has_what_was_measured_and_what_it_means(finished: Finished) -> None:
    result = result_in(finished.folder)

    assert (result["schema"], result["complete"], result["missing"]) == (1, True, [])
    assert result["variants"] == ["bank"]
    assert result["verdict"]["kind"] == "held-across-io"
    assert [seen["as_expected"] for seen in result["observed"]] == [True]
    assert [point["threads"] for point in result["points"]] == [1, 2, 4, 8]
    for point in result["points"]:
        wall_s = point["wall_s"]
        assert len(wall_s["runs"]) == 2
        assert wall_s["low"] <= wall_s["median"] <= wall_s["high"]
        assert wall_s["low"] >= 20 * 0.01
        assert point["work"] == 20
        assert 20 * 0.01 <= point["hold_s"] <= point["traced_wall_s"] * 1.05
        assert set(point["thread_s"]) == {"run", "spin", "park", "gil", "coordination"}
        trace = contention_lab.load(finished.folder / point["trace"])
        assert trace.complete
        assert len(trace.threads) >= point["threads"]
    alone, *together = result["points"]
    assert alone["thread_s"]["park"] == 0.0
    assert all(point["thread_s"]["park"] >= 0.02 for point in together)
    (bound,) = result["bounds"]
    assert bound["serial_hold_s"] == alone["hold_s"]
    (fit,) = result["fits"]
    assert fit["model"] == "usl"
    assert 0.0 <= fit["alpha"] <= 1.0
    assert "vault" in {row["lock"] for row in result["locks"]}  # beside threading's own


@pytest.mark.parametrize("holds_source", [True, False])
def test_source_is_left_out_where_that_is_asked_for(bank: Path, holds_source: bool) -> None:
    told = [] if holds_source else ["--no-source"]
    answer = lab(
        bank, "run", "./bank.toml", "--threads", "1,4", "--repeats", "1",
        "--set", "transfers=10", *told,
    )  # fmt: skip

    assert answer.returncode == 0, answer.stderr
    page = (bank / "reports" / "bank" / "report.html").read_text()
    assert ('<pre class="source"' in page) == holds_source
    assert ("holds no source code" in page) != holds_source


def test_variants_are_compared_in_one_run(bank: Path) -> None:
    text = (bank / "bank.toml").read_text().replace("hold_s = 0.01\n", "")
    (bank / "bank.toml").write_text(text + '\n[variants]\nkey = "hold_s"\nvalues = [0.001]\n')

    answer = lab(
        bank, "run", "bank.toml", "--threads", "1,2", "--repeats", "1",
        "--set", "hold_s=0.001,0.004", "--set", "transfers=10",
    )  # fmt: skip

    assert answer.returncode == 0, answer.stderr
    result = result_in(bank / "reports" / "bank")
    assert result["variants"] == ["0.001", "0.004"]
    medians = {(p["variant"], p["threads"]): p["wall_s"]["median"] for p in result["points"]}
    assert medians["0.004", 1] > 2 * medians["0.001", 1]


def test_a_point_that_crashes_is_listed_and_the_others_are_kept(bank: Path) -> None:
    answer = lab(
        bank, "run", "bank.toml", "--threads", "1,2,4", "--repeats", "1", "--set", "crash_at=4",
        "--out", "some/where",
    )  # fmt: skip

    assert answer.returncode == 1
    result = result_in(bank / "some" / "where")
    assert not result["complete"]
    assert [point["threads"] for point in result["points"]] == [1, 2]
    assert len(result["missing"]) == 2
    assert all("bank at 4 threads" in line for line in result["missing"])
    assert all("RuntimeError: the vault is on fire" in line for line in result["missing"])
    assert "missing: bank at 4 threads, run 1: " in answer.stderr
    assert answer.stdout.endswith("report.html\n")


def test_when_every_run_crashes_the_sweep_stops_early_in_one_line(bank: Path) -> None:
    answer = lab(bank, "run", "bank.toml", "--set", "crash_at=1,2,4,8")

    assert (answer.returncode, answer.stdout) == (1, "")
    assert re.search("every (traced )?run fails; bank at [1248] thread", answer.stderr)
    assert "the vault is on fire" in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.slow
def test_an_interrupted_sweep_keeps_finished_points_and_resume_continues(bank: Path) -> None:
    command = [sys.executable, "-m", "contention_lab", "run", "bank.toml", "--repeats", "3"]
    process = subprocess.Popen(
        command, cwd=bank, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = bank / "reports" / "bank"
    made = wait_for_lines(folder / "runs.jsonl", 4)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert stdout == "reports/bank/report.html\n"
    assert "continue: contention-lab run bank.toml --repeats 3 --resume" in stderr
    before = result_in(folder)
    assert not before["complete"]
    assert before["missing"]
    assert before["points"]

    answer = lab(bank, "run", "bank.toml", "--repeats", "3", "--resume")

    assert answer.returncode == 0, answer.stderr
    after = result_in(folder)
    assert after["complete"]
    assert after["order_seed"] == before["order_seed"]
    assert all(len(point["wall_s"]["runs"]) == 3 for point in after["points"])
    lines = (folder / "runs.jsonl").read_text().splitlines()
    assert lines[: len(made)] == made
    assert len(lines) == 1 + 4 * (3 + 1)


def wait_for_lines(path: Path, count: int) -> list[str]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= count:
            return lines
        time.sleep(0.01)
    raise AssertionError(f"{path} did not reach {count} lines")


def test_resume_does_not_mix_runs_of_different_parameters(bank: Path) -> None:
    tiny = ("run", "bank.toml", "--threads", "1", "--repeats", "1")
    assert lab(bank, *tiny).returncode == 0

    answer = lab(bank, *tiny, "--set", "transfers=5", "--resume")

    assert (answer.returncode, answer.stdout) == (1, "")
    assert "parameters.bank.transfers = 20, not 5" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_resume_can_add_thread_counts_to_a_finished_sweep(bank: Path) -> None:
    assert lab(bank, "run", "bank.toml", "--threads", "1", "--repeats", "1").returncode == 0
    first = result_in(bank / "reports" / "bank")["points"]

    answer = lab(bank, "run", "bank.toml", "--threads", "1,2", "--repeats", "1", "--resume")

    assert answer.returncode == 0, answer.stderr
    points = result_in(bank / "reports" / "bank")["points"]
    assert [point["threads"] for point in points] == [1, 2]
    assert points[0] == first[0]
    assert len(points[1]["wall_s"]["runs"]) == 1


@pytest.mark.slow
def test_the_seven_clients_do_the_same_work_to_the_last_bit(tmp_path: Path) -> None:
    answer = lab(
        tmp_path, "run", "autodiff-all-clients", "--threads", "1,3", "--repeats", "1",
        "--set", "trainings=4", "--set", "steps=2", "--set", "batch=8", "--set", "layers=8,8,4",
    )  # fmt: skip

    assert answer.returncode == 0, answer.stderr
    points = result_in(tmp_path / "reports" / "autodiff-all-clients")["points"]
    assert len(points) == 7 * 2
    assert len({tuple(point["losses"]) for point in points}) == 1
    assert len(points[0]["losses"]) == 4


@pytest.mark.slow
def test_clients_are_predicted_before_they_are_measured(tmp_path: Path) -> None:
    asked = (
        "run", "autodiff-all-clients", "--quick", "--threads", "1,4",
        "--set", "trainings=4", "--set", "client=narrow-lock,channel",
    )  # fmt: skip

    answer = lab(tmp_path, *asked)

    assert answer.returncode == 0, answer.stderr
    folder = tmp_path / "reports" / "autodiff-all-clients"
    prediction = result_in(folder)["prediction"]
    runs = (folder / "runs.jsonl").stat()
    assert (folder / "prediction.json").stat().st_mtime_ns < runs.st_mtime_ns
    assert {one["threads"] for one in prediction["recorded"]} == {1, 2}
    assert len(prediction["proof"]["points"]) == 2 * 2
    assert all(p["low_s"] < p["time_s"] < p["high_s"] for p in prediction["proof"]["points"])
    assert {(one["cores"], one["gil"]) for one in prediction["machines"]} == {
        (cores, gil) for cores in (8, 16, 32, 64, 128) for gil in (True, False)
    }
    assert prediction["remainder"]["cores_alone"] == pytest.approx(1.0, abs=0.05)
    page = (folder / "report.html").read_text()
    assert "Predicted first, then measured" in page
    assert "times as long as simulated with one thread" in page
    made = prediction["made"]

    assert lab(tmp_path, *asked, "--resume").returncode == 0
    assert result_in(folder)["prediction"]["made"] == made


def test_a_wrong_parameter_value_is_found_before_anything_runs(tmp_path: Path) -> None:
    answer = lab(tmp_path, "run", "autodiff-global-mutex", "--set", "client=global-mutx")

    assert (answer.returncode, answer.stdout) == (1, "")
    assert "did you mean 'global-mutex'?" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_on_a_terminal_there_is_a_bar_and_no_colour_is_honoured(bank: Path, no_colour: str) -> None:
    control, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "contention_lab", "run", "bank.toml", "--threads", "1"],
        cwd=bank,
        env={**os.environ, "NO_COLOR": no_colour, "TERM": "xterm-256color", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    shown = read_to_the_end(control)
    assert process.wait(timeout=60) == 0
    assert process.stdout is not None
    with process.stdout as stdout:
        assert stdout.read() == "reports/bank/report.html\n"

    assert "3/3" in shown
    colours = re.search(r"\x1b\[[0-9;]*(3[0-7]|38;5;)", shown)
    assert (colours is None) == bool(no_colour)


def read_to_the_end(control: int) -> str:
    parts = []
    try:
        while part := os.read(control, 4096):
            parts.append(part)
    except OSError:  # Linux: the other end was closed
        pass
    finally:
        os.close(control)
    return b"".join(parts).decode()
