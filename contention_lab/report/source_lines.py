"""Lines of the program's source around the places that a page names.

Source is read when the page is made, and only where it is certainly that of the recording: a Python
file that has not been written since, in which the function that was recorded starts at the line it
started at, and has code on the line that was recorded. So no other file can be read by way of a
trace, whatever paths it names. Nothing of it is executed.
"""

from __future__ import annotations

import ast
import io
import stat
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Final

from contention_lab.report.visible_text import name, short_path, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contention_lab.trace import Frame

AROUND: Final = 4
"""Lines before and after that of a place."""
MOST_EXCERPTS: Final = 80
MOST_CHARACTERS: Final = 60_000
"""Of all excerpts together."""
LONGEST_LINE: Final = 160
MOST_BYTES: Final = 1_000_000
"""Of a file that is looked at."""
SUFFIXES: Final = (".py", ".pyw")

Code = dict[tuple[str, int], set[int]]
"""Lines with code, by qualified name and first line of their function."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, without what all lines of an excerpt are indented by."""

    number: int
    text: str
    is_it: bool
    """It is the line of the place."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines around a place.

    Attributes
    ----------
    anchor
        Id on the page.
    function, place
        As the page writes them.
    """

    anchor: str
    function: str
    place: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class SourceBook:
    """All excerpts of a page.

    Attributes
    ----------
    excerpts
        In the order in which they were wanted.
    absent, changed, left_out
        Places without one: the file is not here or is not Python's; it is not that of the
        recording any more; there was no room.
    """

    excerpts: tuple[Excerpt, ...] = ()
    absent: int = 0
    changed: int = 0
    left_out: int = 0

    def at(self, place: str) -> Excerpt | None:
        """Return the excerpt of a place as the page writes it."""
        return next((one for one in self.excerpts if one.place == place), None)

    @property
    def line_count(self) -> int:
        """Lines of source in the page."""
        return sum(len(one.lines) for one in self.excerpts)


def source_book(
    wanted: Iterable[tuple[Frame, int]], cells: Mapping[str, str] | None = None
) -> SourceBook:
    """Read the lines around places.

    Parameters
    ----------
    wanted
        Places, the most important first, each with the start of its recording (Unix time, ns).
        Of two files that a page would write alike, only the first is read.
    cells
        Texts of a notebook's cells, which no file has, by their names.
    """
    files = {cell: _parsed(text, cell, 0) for cell, text in (cells or {}).items()}
    owners: dict[str, str] = {}
    found: dict[str, Excerpt] = {}
    looked_at = set()
    absent = changed = left_out = room = 0
    for frame, since_ns in wanted:
        key = frame.filename, frame.line
        if key in looked_at or not frame.line:
            continue
        looked_at.add(key)
        if frame.filename not in files:
            files[frame.filename] = _read(frame.filename)
        file = files[frame.filename]
        if file.lines is None:
            absent += 1
            continue
        if file.written_ns > since_ns or not _is_at(file.code, frame):
            changed += 1
            continue
        place = f"{short_path(frame.filename)}:{frame.line}"
        if owners.setdefault(short_path(frame.filename), frame.filename) != frame.filename:
            left_out += 1
            continue
        lines = _around(file.lines, frame.line)
        size = sum(len(line.text) for line in lines)
        if len(found) >= MOST_EXCERPTS or room + size > MOST_CHARACTERS:
            left_out += 1
            continue
        room += size
        found[place] = Excerpt(f"source-{len(found)}", name(frame.function), place, lines)
    return SourceBook(tuple(found.values()), absent, changed, left_out)


@dataclass(frozen=True, slots=True)
class _File:
    """What is known of a file; no lines if it cannot be read as Python."""

    lines: tuple[str, ...] | None
    code: Mapping[tuple[str, int], set[int]]
    written_ns: int


_NOTHING: Final = _File(None, {}, 0)


def _read(filename: str) -> _File:
    path = Path(filename)
    if path.suffix.lower() not in SUFFIXES:
        return _NOTHING
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
            return _NOTHING
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (OSError, SyntaxError, ValueError, LookupError):
        return _NOTHING
    return _parsed(text, filename, facts.st_mtime_ns)


def _parsed(text: str, filename: str, written_ns: int) -> _File:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile(text, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _NOTHING
    return _File(tuple(text.splitlines()), _code(module), written_ns)


def _code(module: CodeType) -> Code:
    found: Code = {}
    pending = [module]
    for code in pending:  # the list grows while it is read
        lines = found.setdefault((code.co_qualname, code.co_firstlineno), set())
        lines.update(line for _, _, line in code.co_lines() if line)
        pending.extend(one for one in code.co_consts if isinstance(one, CodeType))
    return found


def _is_at(code: Mapping[tuple[str, int], set[int]], frame: Frame) -> bool:
    """Tell whether a function has code where a frame was, or starts there."""
    if not frame.first_line:  # of a sampler that does not know where functions begin
        return any(
            frame.line in lines
            for (function, _), lines in code.items()
            if function == frame.function
        )
    first_line = frame.first_line
    lines = code.get((frame.function, first_line), set())
    return frame.line in lines or (bool(lines) and frame.line == first_line)


def _around(lines: tuple[str, ...], line: int) -> tuple[SourceLine, ...]:
    first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
    shown = [lines[number - 1].expandtabs(4).rstrip() for number in range(first, last + 1)]
    indent = min((len(text) - len(text.lstrip()) for text in shown if text), default=0)
    return tuple(
        SourceLine(number, visible(text[indent:], LONGEST_LINE), number == line)
        for number, text in enumerate(shown, first)
    )
