"""Where a line of a program belongs: to which function, and to which statement.

A sidecar names lines and so does a diagnosis; two lines of one statement, or of one function, are
the same place for a reader. It reads source text and runs nothing.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

_PLACE = re.compile(r"([\w./-]+\.py):(\d+)")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Place(NamedTuple):
    """A line of a file; files are told apart by their base names."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def places(text: str | None) -> tuple[Place, ...]:
    """Return the `file.py:line` in a text, in its order; after the last `@` where there is one."""
    tail = (text or "").rpartition("@")[2]
    return tuple(Place(Path(file).name, int(line)) for file, line in _PLACE.findall(tail))


def place_of(site: dict[str, Any] | None) -> Place | None:
    """Return the place of a `site` of a diagnosis."""
    return None if site is None else Place(Path(str(site["file"])).name, int(site["line"]))


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The files of one folder."""

    folder: Path

    def same_statement(self, one: Place, other: Place) -> bool:
        """Tell whether two lines are of one statement; of a block, only its header counts."""
        return one == other or (
            one.file == other.file
            and (first := _statement(self.folder / one.file, one.line)) is not None
            and first == _statement(self.folder / other.file, other.line)
        )

    def same_function(self, one: Place, other: Place) -> bool:
        """Tell whether two lines are of one function; nested functions are others."""
        return self.same_statement(one, other) or (
            one.file == other.file
            and (first := _function(self.folder / one.file, one.line)) is not None
            and first == _function(self.folder / other.file, other.line)
        )

    def function(self, place: Place) -> str:
        """Return the qualified name of the function around a line, empty at module level."""
        found = _function(self.folder / place.file, place.line)
        return found[0] if found else ""

    def assignments(self, file: str, name: str) -> tuple[Place, ...]:
        """Return where a variable or an attribute of this name is assigned."""
        tree = _parsed(self.folder / file)
        return tuple(
            Place(file, node.lineno)
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and name in map(_name, node.targets if isinstance(node, ast.Assign) else [node.target])
        )


def _name(target: ast.expr) -> str:
    return ast.unparse(target).rpartition(".")[2]


@lru_cache(maxsize=256)
def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return None


def _header_end(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    inner = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return max(node.lineno, min(inner, node.end_lineno or node.lineno))


@lru_cache(maxsize=4096)
def _statement(path: Path, line: int) -> tuple[int, int] | None:
    tree = _parsed(path)
    spans = [
        (node.lineno, _header_end(node))
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.stmt) and node.lineno <= line <= _header_end(node)
    ]
    return min(spans, key=lambda span: span[1] - span[0], default=None)


@lru_cache(maxsize=4096)
def _function(path: Path, line: int) -> tuple[str, int] | None:
    tree = _parsed(path)
    found: tuple[str, int] | None = None
    todo: list[tuple[ast.AST, str]] = [(tree, "")] if tree else []
    while todo:
        node, prefix = todo.pop()
        for child in ast.iter_child_nodes(node):
            lowest, highest = getattr(child, "lineno", 0), getattr(child, "end_lineno", None) or 0
            if isinstance(child, ast.ClassDef | _FUNCTIONS[0] | _FUNCTIONS[1]):
                if lowest <= line <= highest:
                    name = f"{prefix}{child.name}"
                    if isinstance(child, _FUNCTIONS):
                        found = (name, lowest)
                    todo = [(child, f"{name}.")]
                    break
            else:
                todo.append((child, prefix))
    return found
