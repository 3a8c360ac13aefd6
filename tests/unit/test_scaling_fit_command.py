"""The `fit` command: what it prints where, in every input form, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from contention_lab.cli.fit import command

if TYPE_CHECKING:
    from pathlib import Path

BURN = ("1=8:12", "2=8:46", "4=10:40", "8=15:16", "16=29:18", "32=54:47")
SPECSDM91 = (
    "threads,throughput\n1,64.9\n18,995.9\n36,1652.4\n72,1853.2\n108,1828.9\n144,1775\n216,1702.2\n"
)


def run(*words: str, text: str | None = None) -> Any:
    """Run the command; return click's result."""
    return CliRunner().invoke(command, list(words), input=text, catch_exceptions=False)


def test_the_seed_case_is_explained_in_seconds() -> None:
    result = run("--work", "fixed", *BURN)

    assert result.exit_code == 0
    assert "the best thread count is 1" in result.stderr.splitlines()[0]
    assert "serial share 0.63 (95 %: 0.4" in result.stderr
    assert "each added thread costs 92.9 s" in result.stderr
    assert "Amdahl's law, which knows no cost per thread, cannot fit this" in result.stderr
    assert "187 s; serial work: 315 s" in result.stderr
    assert "At 32 threads the last makes up 90 % of the time." in result.stderr
    assert "321 s at 32 threads" in result.stderr
    assert "at most 15.7 s with 32 cores" in result.stderr
    assert "context switches and the core count" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("next: ")
    assert "usl *" in result.stdout
    assert "next" not in result.stdout


def test_json_holds_models_choice_and_predictions_in_the_own_unit() -> None:
    result = run("--work", "fixed", "--json", "--at", "16,32,64", *BURN)
    found = json.loads(result.stdout)

    assert result.stderr == ""
    assert found["chosen"] == "usl"
    models = {model["model"]: model for model in found["models"]}
    assert models["usl"]["coefficients"]["parallel_s"] == pytest.approx(187.07, abs=0.01)
    assert models["usl"]["alpha"] == pytest.approx(0.6272, abs=1e-4)
    assert {"linear", "amdahl", "usl", "hockey-stick", "hand-off", "plateau"} == set(models)
    assert [row["threads"] for row in found["predictions"]] == [16, 32, 64]
    for row, measured in zip(found["predictions"], (1758, 3287), strict=False):
        assert row["low"] < measured < row["high"]
        assert row["value"] == pytest.approx(measured, rel=0.05)
    last = found["predictions"][-1]
    assert 3287 < last["low"] < last["value"] < last["high"]


def test_published_coefficients_are_in_the_json_of_a_throughput_table() -> None:
    found = json.loads(run("-", "--work", "fixed", "--json", text=SPECSDM91).stdout)
    parity = found["usl_on_throughput"]

    assert parity["alpha"] == pytest.approx(0.0277285, abs=5e-7)
    assert parity["beta"] == pytest.approx(0.0001044, abs=5e-8)
    assert parity["gamma"] == pytest.approx(89.9952, abs=5e-4)
    assert parity["standard_errors"]["alpha"] == pytest.approx(0.0091217, abs=5e-7)
    assert parity["residual_standard_error"] == pytest.approx(82.85, abs=5e-3)
    assert parity["peak_threads"] == pytest.approx(96.51956, abs=5e-5)


def test_a_file_says_the_same_as_points_typed(tmp_path: Path) -> None:
    file = tmp_path / "burn.csv"
    file.write_text("threads,time\n" + "\n".join(word.replace("=", ",") for word in BURN))

    from_file = run(str(file), "--work", "fixed", "--json")
    typed = run(*BURN, "--work", "fixed", "--json")

    assert from_file.stdout == typed.stdout


def test_work_that_grows_with_the_threads_is_another_answer() -> None:
    fixed = json.loads(run("--work", "fixed", "--json", *BURN).stdout)
    grown = json.loads(run("--work", "per-thread", "--json", *BURN).stdout)

    assert fixed["verdict"]["kind"] == "retrograde"
    assert grown["verdict"]["kind"] in ("sublinear", "saturated")
    assert grown["predictions"][0]["value"] > 3287


def test_rising_times_without_work_are_not_guessed() -> None:
    result = run(*BURN)

    assert result.exit_code == 2
    assert "--work fixed" in result.stderr
    assert "--work per-thread" in result.stderr
    assert result.stdout == ""


def test_three_counts_get_bounds_and_the_reason() -> None:
    result = run("--work", "fixed", *BURN[:3])

    assert result.exit_code == 0
    assert result.stderr.startswith("3 thread counts: bounds only, no law.\n")
    assert "needs at least 4 to be tested at all" in result.stderr
    assert "serial work 242 s to 517 s" in result.stderr
    assert "law " not in result.stdout


def test_three_counts_in_json_have_no_model_but_bounds_and_predictions() -> None:
    found = json.loads(run("--work", "fixed", "--json", "--at", "8", *BURN[:3]).stdout)

    assert found["chosen"] is None
    assert found["models"] == []
    assert found["usl"] is None
    low, high = found["bounds"]["ranges"]["serial_s"]
    assert low < 315 < high
    assert found["predictions"][0]["low"] < 916 < found["predictions"][0]["high"]


@pytest.mark.parametrize(
    ("points", "kind"),
    [
        ("1=8 2=4.1 4=2.2 8=1.2", "scales"),
        ("1=8 2=5 4=3.5 8=2.7", "sublinear"),
        ("1=8 2=4.1 4=2.1 8=2.05 16=2.06", "saturated"),
        ("1=8 2=6 4=7 8=9", "retrograde"),
        ("1=8 2=6 4=6.6 8=7 8=7.2 2=5.9 2=6.1 8=6.9", "retrograde"),
        ("1=8 2=6 4=6.6 8=7 8=5.8 2=5 2=7.1 8=7.4", "saturated"),
        ("1=8 2=6 3=700 4=650", "cliff"),
    ],
)
def test_the_verdict_names_the_shape(points: str, kind: str) -> None:
    found = json.loads(run("--work", "fixed", "--json", *points.split()).stdout)

    assert found["verdict"]["kind"] == kind


def test_a_throughput_is_explained_in_shares_not_in_seconds() -> None:
    result = run("-", text=SPECSDM91)

    assert "(of the time one thread takes)" in result.stderr
    assert " s;" not in result.stderr


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (("nowhere.csv",), 1, "nowhere.csv: No such file"),
        (("four=x",), 1, "four=x: No such file or directory, and no point such as 1=8:12"),
        (("1=8", "2"), 2, "give one file, '-', or only points"),
        (("--at", "x", "--work", "fixed", *BURN), 2, "--at 'x': give thread counts"),
        (("--at", "0", "--work", "fixed", *BURN), 2, "--at '0': give thread counts"),
        (("1=8", "2=x"), 1, "'x' is no number"),
        (("1=8", "2=0", "--work", "fixed"), 1, "must be positive, finite numbers"),
    ],
)
def test_a_mistake_is_named(words: tuple[str, ...], status: int, complaint: str) -> None:
    result = run(*words)

    assert result.exit_code == status
    assert complaint in result.stderr
    assert result.stdout == ""


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"\xff\xfe\x00\x01")

    result = run(str(file))

    assert result.exit_code == 1
    assert "not text" in result.stderr
