"""What `record` is given that it cannot run or record, said at once, in one line.

Everything else is left to Python, which says by itself what is wrong with a script or a folder. The
exit status is the shell's: 127 where there is nothing of that name, 126 where it cannot be run; 1
where it could be run, but not recorded.
"""

import os
import stat

from contention_lab.capture.request import PYTHON_SUFFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

NOT_FOUND: "Final" = 127
NOT_RUNNABLE: "Final" = 126
NOT_RECORDABLE: "Final" = 1

_ELF: "Final" = b"\x7fELF"
_INTERPRETERS: "Final" = frozenset(
    {
        *("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh"),
        *("perl", "ruby", "node", "php", "lua", "awk", "gawk", "tclsh", "Rscript", "julia", "make"),
    }
)
_SOURCES: "Final" = frozenset(
    {
        *(".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hpp", ".rs", ".go", ".java", ".kt"),
        *(".swift", ".zig", ".f90", ".d", ".nim", ".hs", ".ml"),
    }
)
_SHELL: "Final" = (".sh", ".bash", ".zsh", ".ksh")


def refusal(program: "Sequence[str]") -> tuple[str, int] | None:
    """Say why that is not run.

    Parameters
    ----------
    program
        What `python` would be given.

    Returns
    -------
    tuple or None
        What is wrong and what to do, and the exit status. None where it is run.
    """
    word = program[0] if program else "-"
    if not word or word.startswith("-") or word.endswith(PYTHON_SUFFIXES):
        return None
    try:
        mode = os.stat(word).st_mode
    except OSError as error:
        return _absent(word, error)
    return _file(word) if stat.S_ISREG(mode) else None


def _absent(word: str, error: OSError) -> tuple[str, int]:
    if not isinstance(error, FileNotFoundError):
        return f"{word}: {error.strerror}", NOT_RUNNABLE
    there = None
    if os.sep not in word:
        from shutil import which

        there = which(word)
    more = f": a program on PATH is given with its path, {there}" if there else ""
    return f"{word}: there is no such file{more}", NOT_FOUND


def _file(word: str) -> tuple[str, int] | None:
    try:
        with open(word, "rb") as file:
            head = file.read(256)
    except OSError:
        return None  # starting it will tell
    can_be_run = os.access(word, os.X_OK)
    if head.startswith(_ELF):
        if can_be_run:
            return None
        return f"{word}: Permission denied: make it executable, chmod +x", NOT_RUNNABLE
    other = _interpreter(head) or ("sh" if word.endswith(_SHELL) else "")
    if other in _INTERPRETERS:
        what = f"a script for {other}, neither Python nor a program of machine code"
        status = NOT_RECORDABLE if can_be_run else NOT_RUNNABLE
        return f"{word}: {what}: record what it starts", status
    if os.path.splitext(word)[1].lower() in _SOURCES and not head.startswith(b"#!"):
        return f"{word}: source code: record the program that is built from it", NOT_RUNNABLE
    return None


def _interpreter(head: bytes) -> str:
    """Return the name of the interpreter that a script's first line asks for, if it does."""
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    names = [os.path.basename(word) for word in words if not word.startswith("-")]
    return next((name for name in names if name != "env"), "")
