"""Child processes that were to be recorded and could not be.

A Python that is started with -I, -E or -S does not read what would make it record, and one of
another version may find no recorder of its own. The first kind is seen by the parent, the second
tells so itself (`startup/sitecustomize.py`); both add a line to a file beside the trace. The first
process takes it up at its end. Programs that are no Python have nothing to record.
"""

import os
import sys

from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from contention_lab.capture.existing import Note

_LETTERS = "IES"
"""Options of Python that keep it from reading what makes it record."""
_WITH_VALUE = "WX"
_LAST = "cm"
_AFTER_NAME = "0123456789.dtw"


def notes_path(family: str) -> str:
    """Return where the processes of a recording note this: `run.clt` becomes `run.unrecorded`."""
    return f"{os.path.splitext(family)[0]}.unrecorded"


def take_notes(family: str) -> "list[Note]":
    """Return what was noted, as the trace's metadata lists it, and remove the file."""
    path = notes_path(family)
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            lines = file.read().splitlines()
        os.unlink(path)
    except OSError:
        return []
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        what, tab, why = line.partition("\t")
        if tab:
            counts[what, why] = counts.get((what, why), 0) + 1
    return [{"what": what, "why": why, "count": count} for (what, why), count in counts.items()]


def note_if_closed(family: str, program: "Any", argv: "Any") -> None:
    """Note a process that is about to be executed, if it is a Python which cannot be recorded.

    Parameters
    ----------
    family
        The trace of the first process.
    program
        The path of what is executed.
    argv
        Its arguments, from its name on.
    """
    try:
        words = [os.fsdecode(word) for word in argv]
        name = os.path.basename(os.fsdecode(program))
    except (TypeError, ValueError):
        return  # executing it will say what is wrong
    if not _is_python(name):
        name, words = _in_command_of_shell(name, words)
    options = _closing_options(words[1:])
    if options and _is_python(name):
        _note(family, f"child process {name}", f"started with {options}, which shuts us out")


def note_command(family: str, command: "Any") -> None:
    """Note what a shell is about to execute, if that is a Python which cannot be recorded."""
    note_if_closed(family, "sh", ["sh", "-c", command])


def _note(family: str, what: str, why: str) -> None:
    def append() -> None:
        with open(notes_path(family), "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{what}\t{why}\n")

    try:
        _core.quietly(append)
    except OSError:
        pass  # the trace lies beside it: that it cannot be written is said at the end


def _is_python(name: str) -> bool:
    return name == os.path.basename(sys.executable) or (
        name.startswith("python") and not name[len("python") :].strip(_AFTER_NAME)
    )


def _in_command_of_shell(name: str, words: "Sequence[str]") -> tuple[str, list[str]]:
    """Return the first Python in the text of `sh -c`, with its arguments; without its quoting."""
    if not name.endswith("sh") or len(words) < 3 or words[1] != "-c":
        return name, [*words]
    parts = [part.strip("'\";&|()") for part in words[2].split()]
    for at, part in enumerate(parts):
        if _is_python(os.path.basename(part)):
            return os.path.basename(part), parts[at:]
    return name, []


def _closing_options(words: "Sequence[str]") -> str:
    """Return those of Python's options that keep it from recording, as `-I -S`."""
    found = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--"):
            break
        for at, letter in enumerate(word[1:], 2) if word[1] != "-" else ():
            if letter in _LETTERS:
                found.append(f"-{letter}")
            elif letter in _WITH_VALUE:
                if at == len(word):
                    next(rest, None)
                break
            elif letter in _LAST:
                return " ".join(found)
    return " ".join(found)
