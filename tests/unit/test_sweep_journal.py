"""The journal of finished runs: what can be continued, and what must not be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.journal import FILE_NAME, Journal
from contention_lab.sweep.plan import Point, Run

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = {"scenario": "bank", "parameters": {"bank": {"steps": 20}}}
TIMED = Run(Point("bank", 2), 0)
TRACED = Run(Point("bank", 2), None)


def test_a_resumed_journal_has_the_results_and_the_seed_of_before(tmp_path: Path) -> None:
    with Journal(tmp_path, IDENTITY, 5, resume=False) as journal:
        journal.add(TIMED, {"wall_s": 1.5})
        journal.add(TRACED, {"wall_s": 2.5})

    with Journal(tmp_path, IDENTITY, 6, resume=True) as journal:
        assert journal.results == {TIMED: {"wall_s": 1.5}, TRACED: {"wall_s": 2.5}}
        assert journal.seed == 5


def test_without_resume_the_journal_starts_afresh(tmp_path: Path) -> None:
    with Journal(tmp_path, IDENTITY, 5, resume=False) as journal:
        journal.add(TIMED, {"wall_s": 1.5})

    with Journal(tmp_path, IDENTITY, 6, resume=False) as journal:
        assert journal.results == {}
    with Journal(tmp_path, IDENTITY, 7, resume=True) as journal:
        assert (journal.results, journal.seed) == ({}, 6)


def test_runs_of_other_parameters_are_refused_and_the_difference_is_named(tmp_path: Path) -> None:
    with Journal(tmp_path, IDENTITY, 5, resume=False) as journal:
        journal.add(TIMED, {"wall_s": 1.5})
    other = {"scenario": "bank", "parameters": {"bank": {"steps": 5}}}

    with pytest.raises(SweepError, match=r"parameters\.bank\.steps = 20, not 5"):
        Journal(tmp_path, other, 5, resume=True)

    with Journal(tmp_path, IDENTITY, 5, resume=True) as journal:
        assert TIMED in journal.results


@pytest.mark.parametrize("cut", [1, 10, 30])
def test_a_line_cut_by_a_crash_is_dropped_and_the_journal_goes_on(tmp_path: Path, cut: int) -> None:
    with Journal(tmp_path, IDENTITY, 5, resume=False) as journal:
        journal.add(TIMED, {"wall_s": 1.5})
        journal.add(TRACED, {"wall_s": 2.5})
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:-cut])

    with Journal(tmp_path, IDENTITY, 5, resume=True) as journal:
        assert list(journal.results) == [TIMED]
        journal.add(TRACED, {"wall_s": 3.5})
    with Journal(tmp_path, IDENTITY, 5, resume=True) as journal:
        assert journal.results[TRACED] == {"wall_s": 3.5}


def test_a_journal_cut_within_its_first_line_starts_afresh(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b'{"journal": 1, "se')

    with Journal(tmp_path, IDENTITY, 5, resume=True) as journal:
        assert journal.results == {}


def test_two_sweeps_cannot_write_to_one_folder(tmp_path: Path) -> None:
    with (
        Journal(tmp_path, IDENTITY, 5, resume=False) as journal,
        pytest.raises(SweepError, match="another sweep is writing here"),
    ):
        Journal(tmp_path, IDENTITY, 5, resume=False)

    assert journal.seed == 5


def test_another_file_of_that_name_is_not_overwritten_on_resume(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"somebody": "else"}\n')

    with pytest.raises(SweepError, match="no journal of a sweep"):
        Journal(tmp_path, IDENTITY, 5, resume=True)
