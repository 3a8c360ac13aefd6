"""Files and lines of native calls, from what the compiler left in a program's file (`-g`).

It asks `addr2line` or `llvm-symbolizer`, whichever is there, and only about files that still are
what was recorded. It does not read debug information itself. Nothing fails for want of lines: it is
said why they are not known.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from contention_lab.trace.build_id import build_id
from contention_lab.trace.native_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TOOLS: Final = {
    "addr2line": ("-a", "-f", "-i", "-e"),
    "llvm-symbolizer": (
        *("--output-style=GNU", "--functions=linkage", "--inlines", "--addresses"),
        "--obj",
    ),
}
"""Programs that know lines, and their options; what is asked about comes last."""

LONGEST_S: Final = 30.0
"""How long one of them may take over a file."""

_LANGUAGES_OWN: Final = re.compile(
    r"^/rustc/[0-9a-f]+/library/|/rustlib/src/rust/library/|/include/(?:[^/]+/)?c\+\+/"
)
"""Sources of the standard libraries of Rust and C++."""

Place = tuple[str, int, str]
"""A source file, a line in it, and the function, empty for the one that the symbol names."""


@dataclass(frozen=True, slots=True)
class Lines:
    """What is known of the calls in one file.

    Attributes
    ----------
    places
        Source file, line and function by offset.
    reason
        Why there are none; empty if there are.
    """

    places: Mapping[int, Place]
    reason: str = ""


def native_lines(path: str, recorded_id: str, offsets: Iterable[int]) -> Lines:
    """Look up where calls are in the sources.

    Parameters
    ----------
    path
        A program or library.
    recorded_id
        Its build id when it was recorded; empty if it had none.
    offsets
        Of the calls in it.

    Returns
    -------
    Lines
        Of code that the compiler put in line, the place in the function that the machine is in. If
        that belongs to the language's library, which only runs what it is given, the place and the
        function of the program that was put in line there.
    """
    name = PurePath(path).name
    present_id = build_id(path)
    if present_id is None:
        return Lines({}, f"{name} is not there any more")
    if present_id != recorded_id:
        return Lines({}, f"{name} has been built anew since")
    tool = next((found for known in TOOLS if (found := shutil.which(known))), None)
    if tool is None:
        return Lines({}, f"neither {' nor '.join(TOOLS)} is installed")
    wanted = sorted(set(offsets))
    command = [tool, *TOOLS[PurePath(tool).name], str(Path(path))]
    asked = "".join(f"{offset:#x}\n" for offset in wanted)
    try:
        done = subprocess.run(
            command, input=asked.encode(), capture_output=True, timeout=LONGEST_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return Lines({}, f"{PurePath(tool).name} could not read {name}")
    places = read_places(done.stdout.decode("utf-8", "backslashreplace").splitlines())
    if not places:
        return Lines({}, f"{name} was built without them (-g)")
    return Lines(places)


def read_places(lines: Sequence[str]) -> dict[int, Place]:
    """Read the answers: an address, then functions and places, the one that was put in line first.

    Parameters
    ----------
    lines
        As `addr2line -a -f -i` prints them.
    """
    found: dict[int, list[Place]] = {}
    offset, function = None, ""
    for line in lines:
        file, _, number = line.rpartition(":")
        if not function and line.startswith("0x") and not file:
            offset = int(line, 16)
        elif not function:
            function = line
        else:
            digits = number.partition(" ")[0]  # "(discriminator 3)" may follow
            if offset is not None and digits.isdigit() and int(digits) and not file.startswith("?"):
                found.setdefault(offset, []).append((file, int(digits), function))
            function = ""
    return {offset: _outermost(places) for offset, places in found.items()}


def _outermost(places: Sequence[Place]) -> Place:
    """Return the outermost place that is the program's; the outermost of all if none is."""
    *inner, (file, number, _) = places
    if _LANGUAGES_OWN.search(file):
        for own, line, function in reversed(inner):
            if not _LANGUAGES_OWN.search(own):
                name = readable(function)
                return own, line, name if "::" in name else ""
    return file, number, ""
