"""Following a sweep that another process makes, by its journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from test_sweep_conclusion import measured, write_trace

from contention_lab.cli import main
from contention_lab.cli.watching import PAUSE_S, watch
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.journal import FILE_NAME, Journal
from contention_lab.sweep.plan import Point, Run
from contention_lab.sweep.under_way import is_running, under_way

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

IDENTITY: dict[str, Any] = {
    "scenario": "bank",
    "workload": "bank.py",
    "parameters": {"bank": {"transfers": 10}},
}


def add_point(journal: Journal, folder: Path, threads: int, wall_s: float) -> None:
    point = Point("bank", threads)
    write_trace(folder / point.trace_name, threads, 60 // threads)
    journal.add(Run(point, 0), measured(wall_s))
    journal.add(Run(point, None), measured(wall_s))


@pytest.fixture(autouse=True)
def priority(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keep the tests' own priority, and say what was asked for."""
    asked: list[int] = []
    monkeypatch.setattr("os.nice", asked.append)
    return asked


def test_what_was_measured_so_far_is_read_while_the_sweep_writes(tmp_path: Path) -> None:
    with Journal(tmp_path, IDENTITY, 7, resume=False) as journal:
        add_point(journal, tmp_path, 2, 0.1)
        journal.add(Run(Point("bank", 8), 2), measured(0.3))

        seen = under_way(tmp_path)

        assert is_running(tmp_path)
        assert seen.runs == 3
        assert (seen.scenario.threads, seen.scenario.repeats) == ((2, 8), 3)
        assert seen.scenario.variant_parameters() == IDENTITY["parameters"]
    assert not is_running(tmp_path)


def test_variants_are_told_apart_by_the_parameter_that_names_them(tmp_path: Path) -> None:
    parameters = {
        "1": {"depth": 1, "size": 3},
        "2": {"depth": 2, "size": 3},
    }
    with Journal(tmp_path, IDENTITY | {"parameters": parameters}, 7, resume=False):
        assert under_way(tmp_path).scenario.variant_parameters() == parameters


def test_a_half_written_line_is_not_read_yet(tmp_path: Path) -> None:
    with Journal(tmp_path, IDENTITY, 7, resume=False) as journal:
        journal.add(Run(Point("bank", 1), 0), measured(0.3))
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes() + b'{"variant": "bank", "thr')

    assert under_way(tmp_path).runs == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"[1]\n", b'{"journal": 1, "seed": 1, "identity": {"command": "make"}}\n'],
)
def test_a_journal_of_something_else_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)

    with pytest.raises(SweepError, match="another command") as raised:
        under_way(tmp_path)

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "line", ['{"variant": "bank"}', '{"variant": 1, "threads": [], "repeat": 0, "result": {}}']
)
def test_a_journal_with_lines_of_another_version_is_one_line(tmp_path: Path, line: str) -> None:
    header = json.dumps({"journal": 1, "seed": 1, "identity": IDENTITY})
    (tmp_path / FILE_NAME).write_text(f"{header}\n{line}\n")

    with pytest.raises(SweepError, match="no journal of this version"):
        under_way(tmp_path)


def sleeper(*acts: Callable[[], object]) -> Callable[[float], None]:
    """Return a sleep that acts after each pause between two pages."""
    left = list(acts)
    slept = 0.0

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds
        if slept < PAUSE_S:
            return
        slept = 0.0
        left.pop(0)()

    return sleep


def test_the_page_is_written_again_as_results_arrive_until_the_sweep_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], priority: list[int]
) -> None:
    page = tmp_path / "report.html"
    journal = Journal(tmp_path, IDENTITY, 7, resume=False)
    add_point(journal, tmp_path, 1, 0.060)
    pages: list[str] = []

    def more() -> None:
        pages.append(page.read_text())
        add_point(journal, tmp_path, 4, 0.065)

    def end() -> None:
        pages.append(page.read_text())
        journal.__exit__(None, None, None)

    watch(tmp_path, sleep=sleeper(more, lambda: None, end))

    assert "2 runs have ended. Reload this page to see more." in pages[0]
    assert "4 runs have ended" in pages[1]
    assert "4 threads" not in pages[0]
    assert "4 threads" in pages[1]
    assert 'http-equiv="refresh"' not in pages[1]
    assert priority == [19]
    out, err = capsys.readouterr()
    assert out == f"{page}\n"
    assert err.count("reload ") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", FILE_NAME, "traces"]


def test_nothing_is_written_over_the_page_of_a_sweep_that_has_just_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, IDENTITY, 7, resume=False)
    add_point(journal, tmp_path, 1, 0.060)

    def ends_meanwhile(*_: object, **__: object) -> str:
        journal.__exit__(None, None, None)
        (tmp_path / "report.html").write_text("<!doctype html>the last page")
        return "<!doctype html>an early page"

    monkeypatch.setattr("contention_lab.sweep.conclusion.page_so_far", ends_meanwhile)

    watch(tmp_path)

    assert (tmp_path / "report.html").read_text() == "<!doctype html>the last page"


def test_before_a_point_is_whole_it_waits(tmp_path: Path) -> None:
    journal = Journal(tmp_path, IDENTITY, 7, resume=False)
    journal.add(Run(Point("bank", 1), 0), measured(0.06))

    watch(tmp_path, sleep=lambda _: journal.__exit__(None, None, None))

    assert not (tmp_path / "report.html").exists()


def test_ctrl_c_ends_the_watching_and_not_the_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with Journal(tmp_path, IDENTITY, 7, resume=False):
        watch(tmp_path, sleep=interrupted)

    assert "the sweep goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "answer"),
    [
        (["{folder}"], 1, "the sweep there is over"),
        (["{folder}/none"], 1, "no sweep writes here"),
        (["{folder}", "{folder}"], 2, "the folder of one sweep"),
        (["{folder}/runs.jsonl"], 2, "the folder of one sweep"),
        (["{folder}", "-o", "x.html"], 2, "leave out -o"),
    ],
)
def test_what_cannot_be_watched_is_said_in_a_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    answer: str,
) -> None:
    with Journal(tmp_path, IDENTITY, 7, resume=False):
        pass

    assert (
        main(["report", "--watch", *(word.format(folder=tmp_path) for word in arguments)]) == status
    )

    (line,) = capsys.readouterr().err.splitlines()
    assert answer in line
