"""The `simulate` command: the textbook's question, answered as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from contention_lab.cli.simulate import command
from contention_lab.simulate.policies import POLICIES

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = ("--hold-ns", "200", "--think-ns", "1000", "--cores", "4")


@pytest.fixture(autouse=True)
def _an_unmeasured_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(*words: str) -> Any:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


@pytest.mark.parametrize("kind", POLICIES)
def test_every_lock_is_answered_beside_its_band(kind: str) -> None:
    result = run("--lock", kind, *QUESTION, "--threads", "1,2,4", "--json")
    found = json.loads(result.stdout)

    assert found["lock"] == kind
    assert [point["threads"] for point in found["points"]] == [1, 2, 4]
    for point in found["points"]:
        band = point["band"]
        assert 0 < point["throughput_per_s"] <= 1.03 * band["bound_per_s"]
        assert band["mean_value_analysis_per_s"] <= band["bound_per_s"]
        assert point["response_p99_ns"] >= point["response_p50_ns"]
        assert 0 <= point["utilisation"] <= 1.001
    assert found["calibration"]["measured_at"] is None


def test_the_answer_comes_first_and_the_table_on_standard_output() -> None:
    result = run("--lock", "parking", *QUESTION, "--threads", "1,8")

    assert result.stderr.startswith("parking: at most ")
    assert "nobody measured this host" in result.stderr
    assert result.stderr.rstrip().endswith("next: contention-lab calibrate")
    assert len(result.stdout.splitlines()) == 3


def test_the_same_question_has_the_same_answer() -> None:
    words = ("--lock", "test-and-set", *QUESTION, "--threads", "3,9", "--json")

    assert run(*words).stdout == run(*words).stdout


def test_more_readers_make_a_reader_writer_lock_faster() -> None:
    rates = []
    for share in ("0", "0.9", "1"):
        words = ("--lock", "reader-writer", *QUESTION, "--threads", "4", "--read-share", share)
        rates.append(json.loads(run(*words, "--json").stdout)["points"][0]["throughput_per_s"])

    assert rates[2] > rates[0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--lock", "tiket", *QUESTION, "--threads", "1"), "did you mean 'ticket'"),
        (("--lock", "mcs", *QUESTION, "--threads", "1,x"), "give thread counts"),
        (("--lock", "mcs", *QUESTION, "--threads", "0"), "give thread counts"),
        (("--lock", "mcs", *QUESTION), "--threads"),
    ],
)
def test_a_mistake_is_named(words: tuple[str, ...], complaint: str) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert complaint in result.stderr


def test_a_calibration_that_is_not_there_is_an_error_of_one_line(tmp_path: Path) -> None:
    result = run(
        *("--lock", "mcs", *QUESTION, "--threads", "1"),
        *("--calibration", str(tmp_path / "none.json")),
    )

    assert result.exit_code == 1
    assert "none.json: No such file" in result.stderr
