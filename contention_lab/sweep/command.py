"""A command that is swept over thread counts: what is typed, and how it is recorded.

It runs nothing. `{threads}` in any word stands for the thread count; every other brace is the
command's own.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contention_lab.sweep.errors import SweepError

if TYPE_CHECKING:
    from contention_lab.sweep.figure import Figure

PLACE: Final = "{threads}"
_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*t?(\.exe)?")


@dataclass(frozen=True, slots=True)
class Command:
    """What is run at each thread count.

    Attributes
    ----------
    words
        The command, with `{threads}` in one word at least.
    threads
        Thread counts, ascending.
    repeats
        Timed runs of each.
    figure
        Where the measured value comes from.
    recorded
        Whether each thread count is recorded in one more run.
    """

    words: tuple[str, ...]
    threads: tuple[int, ...]
    repeats: int
    figure: Figure
    recorded: bool = False

    @property
    def name(self) -> str:
        """What the command is called: its program or script, fit for the name of a folder."""
        words = list(self.words)
        if _PYTHON.fullmatch(Path(words[0]).name) and "-c" not in words[:2]:
            rest = [word for word in words[1:] if word not in ("-m", "-")]
            words = [word for word in rest if not word.startswith("-")] or words
        stem = Path(words[0]).name.removesuffix(".py").replace(PLACE, "")
        return re.sub(r"[^\w.-]+", "-", stem).strip(".-") or "command"

    def words_at(self, threads: int) -> list[str]:
        """Return the command for one thread count."""
        return [word.replace(PLACE, str(threads)) for word in self.words]

    def recorded_at(self, threads: int, trace: Path) -> list[str]:
        """Return the command that records it into `trace`."""
        words = self.words_at(threads)
        runs_python = _PYTHON.fullmatch(Path(words[0]).name) is not None
        python, rest = (words[0], words[1:]) if runs_python else (sys.executable, words)
        return [python, "-m", "contention_lab", "record", "-o", str(trace), *rest]

    def check(self) -> None:
        """Raise SweepError, one line, where this cannot be run or would measure nothing."""
        if not any(PLACE in word for word in self.words):
            raise SweepError(
                f"no {PLACE} in the command, so it would do the same at every thread count; put "
                f"it where the number of threads goes, such as: {self.words[0]} --jobs {PLACE}"
            )
        for threads in self.threads:
            program = self.words_at(threads)[0]
            if shutil.which(program) is None:
                there = " (it is there, but may not be executed)" if Path(program).exists() else ""
                raise SweepError(f"{program}: command not found{there}")
        if self.recorded:
            self._check_recorded()

    def _check_recorded(self) -> None:
        first, *rest = self.words
        if _PYTHON.fullmatch(Path(first).name):
            if rest and (rest[0] == "-m" or not rest[0].startswith("-")):
                return
            raise SweepError(
                f"--record: {first} must be followed by a script or -m MODULE, without options "
                "of the interpreter"
            )
        if not first.endswith(".py"):
            raise SweepError(
                f"--record needs a command in Python, such as: python script.py {PLACE}; "
                f"{first} is none"
            )

    def identity(self) -> dict[str, Any]:
        """Return what must be equal for runs to belong to one result."""
        return {"command": list(self.words), "figure": self.figure.to_json()}
