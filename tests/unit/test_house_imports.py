"""Imports point one way through the house, and the top of the package stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import contention_lab

PACKAGE = Path(contention_lab.__path__[0])

LAYERS = (
    {"native"},
    {"trace"},
    {"locks", "capture"},
    {"analysis"},
    {"sampling", "scaling", "simulate"},
    {"importing"},
    {"diagnosis"},
    {"comparison"},
    {"report", "export"},
    {"testing"},
    {"sweep", "cli", "pytest_plugin"},
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}
PARTS = sorted(
    path.name
    for path in PACKAGE.iterdir()
    if path.is_dir() and (path / "__init__.py").exists() and path.name != "scenarios"
)


def imported_parts(part: str) -> dict[str, set[str]]:
    """Return the parts of the package that each file of a part imports."""
    found: dict[str, set[str]] = {}
    for path in sorted((PACKAGE / part).rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                assert node.module is not None
                names.add(node.module)
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
        found[str(path)] = {
            name.split(".")[1]
            for name in names
            if name.startswith("contention_lab.") and name.split(".")[1] in PARTS
        }
    return found


def test_every_part_has_a_place_in_the_house() -> None:
    assert set(PARTS) - {"autodiff"} <= set(RANK)


@pytest.mark.parametrize("part", [part for part in PARTS if part != "autodiff"])
def test_a_part_imports_only_what_stands_before_it(part: str) -> None:
    for path, imported in imported_parts(part).items():
        for other in imported - {part}:
            assert other in RANK, f"{path} imports {other}"
            assert RANK[other] <= RANK[part], f"{path} imports {other}"


def test_autodiff_imports_only_locks() -> None:
    for path, imported in imported_parts("autodiff").items():
        assert imported <= {"autodiff", "locks"}, path


def test_nothing_imports_the_command_line() -> None:
    for part in PARTS:
        if part != "cli":
            assert not any("cli" in imported for imported in imported_parts(part).values())


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = (
        "import sys, contention_lab\n"
        "print([m for m in ('numpy', 'scipy', 'matplotlib', 'jinja2', 'rich', 'click')"
        " if m in sys.modules])"
    )

    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "[]\n"
