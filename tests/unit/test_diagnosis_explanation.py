"""Every kind of finding can be explained, with code that is code."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from contention_lab.cli.explain import command
from contention_lab.diagnosis import explanation as module
from contention_lab.diagnosis.explanation import explanation, kinds

FOLDER = Path(module.__file__).parent / "explained"
README = Path(__file__).parents[2] / "README.md"


def test_each_kind_has_a_file_and_each_file_a_kind() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(kinds())


@pytest.mark.parametrize("kind", kinds())
def test_an_explanation_has_all_its_parts(kind: str) -> None:
    about = explanation(kind)

    assert about.in_short.endswith(".")
    assert about.meaning.count("\n\n") >= 1
    assert all(line.startswith(("- ", "  ")) for line in about.advice.splitlines() if line), (
        about.advice
    )
    assert len(about.decided) > 100


@pytest.mark.parametrize("kind", kinds())
def test_the_examples_are_python_and_differ(kind: str) -> None:
    about = explanation(kind)

    for code in (about.before, about.after):
        wrapped = "async def example():\n" + textwrap.indent(code, "    ")
        ast.parse(wrapped)
    assert about.before != about.after


@pytest.mark.parametrize("kind", kinds())
def test_the_readme_names_the_kind(kind: str) -> None:
    assert f"`{kind}`" in README.read_text(encoding="utf-8")


def test_a_kind_is_printed_whole() -> None:
    about = explanation("held-across-io")

    printed = CliRunner().invoke(command, ["held-across-io"]).stdout

    for part in (about.meaning, about.advice, about.decided):
        assert part in printed
    assert textwrap.indent(about.after, "    ") in printed


def test_without_a_kind_all_are_listed() -> None:
    lines = CliRunner().invoke(command, []).stdout.splitlines()

    assert [line.split()[0] for line in lines] == list(kinds())
    assert len(lines) == len(set(lines))


def test_a_kind_that_is_found_in_two_ways_is_explained_with_both() -> None:
    decided = explanation("external-lock").decided

    assert "waits for a file lock" in decided
    assert "it is a lock (a mutex" in decided


def test_a_mistyped_kind_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(command, ["held-across-oi"])

    assert result.exit_code == 2
    assert "held-across-io" in result.stderr
    assert len(result.stderr.splitlines()[-1:]) == 1
