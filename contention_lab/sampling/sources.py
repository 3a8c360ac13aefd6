"""The sources of a sampled program: texts of lines, and what locks are taken and held where.

A file that has been changed since the program began is not read: its lines may be others.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contention_lab.sampling.critical_sections import FileLocks, file_locks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.sampling.frame import SampledFrame

LARGEST_FILE_BYTES: Final = 2_000_000
"""Larger sources are generated; parsing them takes seconds."""


class Sources:
    """Source files, each read once.

    Parameters
    ----------
    before_unix_ns
        Files changed later are not read; by default all are.
    root
        Folder that stands for `/`, of a program that sees another file system.
    folder
        Where relative paths begin.
    """

    def __init__(
        self,
        before_unix_ns: int | None = None,
        root: Path = Path("/"),
        folder: Path = Path("/"),
    ) -> None:
        self._before = before_unix_ns
        self._root = root
        self._folder = folder
        self._files: dict[str, tuple[Sequence[str], FileLocks]] = {}

    def text(self, file: str, line: int) -> str:
        """Return a line, stripped; empty where it cannot be read."""
        lines = self._file(file)[0]
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def locks(self, file: str) -> FileLocks:
        """Return the locks of a file; none where it cannot be read."""
        return self._file(file)[1]

    def with_texts(self, frames: Sequence[SampledFrame]) -> tuple[SampledFrame, ...]:
        """Return a stack whose innermost Python frames have the text of their lines."""
        found = []
        for frame in frames:
            wanted = not frame.is_native and not frame.text
            text = self.text(frame.file, frame.line) if wanted else ""
            found.append(replace(frame, text=text) if text else frame)
        return tuple(found)

    def _file(self, file: str) -> tuple[Sequence[str], FileLocks]:
        if file not in self._files:
            self._files[file] = self._read(file)
        return self._files[file]

    def _read(self, file: str) -> tuple[Sequence[str], FileLocks]:
        if not file or file.startswith("<"):
            return (), FileLocks()
        path = self._root / (self._folder / file).relative_to("/")
        try:
            status = path.stat()
            changed = self._before is not None and status.st_mtime_ns > self._before
            if changed or status.st_size > LARGEST_FILE_BYTES:
                return (), FileLocks()
            source = path.read_bytes()
            lines = source.decode("utf-8", "replace").splitlines()
            return lines, file_locks(source)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return (), FileLocks()
