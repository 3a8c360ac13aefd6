"""Files and lines of native calls, from what the compiler left in a program's file (`-g`).

It asks `addr2line` or `llvm-symbolizer`, whichever is there, and only about files that still are
what was recorded. It does not read debug information itself. Nothing fails for want of lines: it is
said why they are not known.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from contention_lab.trace.build_id import build_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TOOLS: Final = {
    "addr2line": ("-a", "-i", "-e"),
    "llvm-symbolizer": (
        *("--output-style=GNU", "--functions=none", "--inlines", "--addresses"),
        "--obj",
    ),
}
"""Programs that know lines, and their options; what is asked about comes last."""

LONGEST_S: Final = 30.0
"""How long one of them may take over a file."""


@dataclass(frozen=True, slots=True)
class Lines:
    """What is known of the calls in one file.

    Attributes
    ----------
    places
        Source file and line by offset.
    reason
        Why there are none; empty if there are.
    """

    places: Mapping[int, tuple[str, int]]
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
        Of code that the compiler put in line, the place in the function that the machine is in.
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


def read_places(lines: Sequence[str]) -> dict[int, tuple[str, int]]:
    """Read the answers: an address, then places, the one that was put in line first.

    Parameters
    ----------
    lines
        As `addr2line -a -i` prints them.
    """
    places = {}
    offset = None
    for line in lines:
        file, _, number = line.rpartition(":")
        if not file:
            offset = int(line, 16) if line.startswith("0x") else None
            continue
        digits = number.partition(" ")[0]  # "(discriminator 3)" may follow
        if offset is not None and digits.isdigit() and int(digits) and not file.startswith("?"):
            places[offset] = (file, int(digits))
    return places
