"""The finished runs of a sweep, one JSON line each, so that an interrupted one can go on.

It stores what runs measured and judges none of it; a run that failed leaves no line and is made
again. The first line says what is being measured. Runs of other parameters, another workload or
another Python must never end up in one result, so a journal is continued only by a sweep that would
write the same first line; thread counts and repeats are not in it, and may grow.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any, Final

from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.plan import Point, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

FILE_NAME: Final = "runs.jsonl"


class Journal:
    """The journal of one output folder, open for writing and locked against a second sweep.

    Parameters
    ----------
    folder
        The output folder; it exists.
    identity
        What is measured, as JSON: equal identities may share a journal.
    seed
        Seed of the order of runs, kept when a journal is continued.
    resume
        Continue what is there, instead of starting afresh.

    Attributes
    ----------
    results
        What every finished run measured.
    seed
        Seed of the order of runs.

    Raises
    ------
    SweepError
        The journal is of something else, or in use.
    """

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], seed: int, *, resume: bool
    ) -> None:
        self._path = folder / FILE_NAME
        self.seed = seed
        self.results: dict[Run, dict[str, Any]] = {}
        self._file = self._path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lines = self._lines() if resume else []
            if lines:
                self._continue(lines, identity)
            else:
                self._file.truncate(0)
                self._write({"journal": 1, "seed": seed, "identity": identity})
        except BlockingIOError as error:
            self._file.close()
            raise SweepError(
                f"{folder}: another sweep is writing here; wait for it, or choose --out"
            ) from error
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, run: Run, result: dict[str, Any]) -> None:
        """Store what a run measured; it is on disk when this returns."""
        self.results[run] = result
        point = {"variant": run.point.variant, "threads": run.point.threads}
        self._write({**point, "repeat": run.repeat, "result": result})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _lines(self) -> list[dict[str, Any]]:
        """Return the whole lines; one that was cut by a crash is removed."""
        self._file.seek(0)
        lines = []
        end = 0
        for line in self._file:
            try:
                content = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                content = None
            if not isinstance(content, dict):
                break
            lines.append(content)
            end += len(line)
        self._file.truncate(end)
        return lines

    def _continue(self, lines: list[dict[str, Any]], identity: Mapping[str, Any]) -> None:
        header, *runs = lines
        if header.get("journal") != 1:
            raise SweepError(f"{self._path}: is no journal of a sweep; choose another --out")
        for key, then, now in _differences(header.get("identity"), identity):
            raise SweepError(
                f"{self._path}: was made with {key} = {then!r}, not {now!r}; "
                f"leave out --resume to start afresh, or choose another --out"
            )
        self.seed = header["seed"]
        for line in runs:
            run = Run(Point(line["variant"], line["threads"]), line["repeat"])
            self.results[run] = line["result"]


def _differences(then: Any, now: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield every place where two JSON values differ: its key, and both values."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in sorted({*then, *now}):
            yield from _differences(then.get(name), now.get(name), f"{key}.{name}".lstrip("."))
    elif then != now:
        yield key, then, now
