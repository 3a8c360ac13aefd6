"""The page of a sweep that is over, made again from its folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from test_sweep_conclusion import outcome, scenario, whole_sweep

from contention_lab.cli import main
from contention_lab.sweep.conclusion import conclude
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.finished import finished_page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    conclude(scenario(tmp_path), outcome(whole_sweep(tmp_path)), tmp_path, source=False)
    return tmp_path


def test_the_page_is_the_one_that_the_sweep_wrote(ended: Path) -> None:
    written = (ended / "report.html").read_text(encoding="utf-8")
    verdict = json.loads((ended / "result.json").read_text(encoding="utf-8"))["verdict"]

    assert finished_page(ended, source=False) == (verdict["summary"], written)


def test_the_command_takes_the_folder(ended: Path) -> None:
    written = (ended / "report.html").read_text(encoding="utf-8")
    other = ended / "again.html"

    assert main(["report", str(ended), "-o", str(other), "--no-source"]) == 0

    assert other.read_text(encoding="utf-8") == written


def test_traces_that_are_gone_leave_the_figures(ended: Path) -> None:
    for trace in ended.rglob("*.clt"):
        trace.unlink()

    _, page = finished_page(ended)

    assert "No trace of this sweep could be read" in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "has no result.json"),
        ("{", "is damaged"),
        ("[]", "no result of this version"),
        ('{"scenario": 1}', "no result of this version"),
        ("{}", "no result of this version"),
    ],
)
def test_what_is_no_sweep_is_one_line(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "result.json").write_text(content, encoding="utf-8")

    with pytest.raises(SweepError, match=said) as caught:
        finished_page(tmp_path)

    assert "\n" not in str(caught.value)
