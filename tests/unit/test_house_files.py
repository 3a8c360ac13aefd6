"""Rules about the files themselves: short, explained, and free of one person's machine."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import contention_lab

PACKAGE = Path(contention_lab.__path__[0])
ROOT = Path(__file__).parents[2]
LONGEST = 400
SOURCES = sorted(
    path for pattern in ("*.py", "*.c", "*.h", "*.js", "*.css") for path in PACKAGE.rglob(pattern)
)
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|work)/\w")
TESTS = ROOT / "tests"
WRITTEN_BY_HAND = ("*.py", "*.toml", "*.md", "*.c", "*.h", "*.js", "*.css", "*.html", "*.j2")


def written_files() -> list[Path]:
    """Return the text files of the repository that people write."""
    folders = ("contention_lab", "scenarios", "tests", ".ci", ".github")
    files = [ROOT / "README.md", ROOT / "pyproject.toml", *(ROOT / ".ci").glob("*")]
    for folder in folders:
        for pattern in WRITTEN_BY_HAND:
            files.extend((ROOT / folder).rglob(pattern))
    invented = set((TESTS / "unit").rglob("*"))  # traces made by hand have paths made by hand
    return [path for path in files if path.is_file() and path not in invented]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_source_file_is_longer_than_four_hundred_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_no_file_is_named_after_nothing() -> None:
    assert not [path for path in SOURCES if path.stem in FORBIDDEN_NAMES]


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.suffix == ".py"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_no_file_names_a_folder_of_one_machine() -> None:
    named = {
        str(path.relative_to(ROOT)): found.group()
        for path in written_files()
        if (found := MACHINE_PATH.search(path.read_text(encoding="utf-8")))
    }

    assert named == {}


def test_every_folder_of_the_package_is_installed() -> None:
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "contention_lab").rglob("__init__.py")
    }
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]

    assert folders | {"contention_lab.scenarios"} == set(setuptools["packages"])
