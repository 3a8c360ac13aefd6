"""Waits in native code as a page shows them: whose lock, who waits, who has it, both stacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.native_locks import native_locks
from contention_lab.analysis.native_program import is_native_program
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from contention_lab.analysis.native_locks import NativeLockRow, NativeParty
    from contention_lab.trace import Frame, Trace

SHOWN: Final = 15
"""Rows, at most."""
PARTIES: Final = 3
"""Places on each side of a lock, at most."""
FRAMES: Final = 24
"""Of a stack, at most."""


@dataclass(frozen=True, slots=True)
class StackLine:
    """A frame: a function and where it is. Native ones have a library and no line."""

    function: str
    place: str
    is_native: bool


@dataclass(frozen=True, slots=True)
class PartyLine:
    """A place on one side of a lock. Time in seconds."""

    function: str
    place: str
    seconds: float
    stack: tuple[StackLine, ...]
    """Innermost first."""


@dataclass(frozen=True, slots=True)
class NativeLine:
    """Locks of one kind at one function of one library. Times in seconds."""

    title: str
    what: str
    native_library: str
    for_others: bool
    waits: int
    wait_s: float
    longest_s: float
    with_gil_s: float
    unknown_s: float
    """Waited without anybody being seen to have it."""
    victims: tuple[PartyLine, ...]
    holders: tuple[PartyLine, ...]


@dataclass(frozen=True, slots=True)
class NativeLines:
    """Rows to show and what was left out."""

    seen: bool
    """The layer was there, and the program is Python: of others, all locks are native."""
    rows: tuple[NativeLine, ...]
    others: int
    others_wait_s: float


def native_lines(trace: Trace) -> NativeLines:
    """Lay out the native locks of a trace, those of the longest waits first."""
    table = native_locks(trace)
    rest = table[SHOWN:]
    return NativeLines(
        trace.meta.get("native_layer") is True and not is_native_program(trace),
        tuple(map(_line, table[:SHOWN])),
        len(rest),
        sum(row.wait_s for row in rest),
    )


def _line(row: NativeLockRow) -> NativeLine:
    identity = row.identity
    what = [identity.type_name]
    if identity.function:
        what.append(f"in `{identity.function}`")
    if row.locks > 1:
        what.append(f"{row.locks} of them")
    if row.site is not None:
        what.append(f"first waited for at {short_path(row.site.filename)}:{row.site.line}")
    return NativeLine(
        title=identity.text,
        what=", ".join(what),
        native_library=identity.native_library,
        for_others=not identity.is_contention,
        waits=row.waits,
        wait_s=row.wait_s,
        longest_s=row.longest_s,
        with_gil_s=row.with_gil_s,
        unknown_s=max(0.0, row.wait_s - row.blamed_s),
        victims=tuple(map(_party, row.victims[:PARTIES])),
        holders=tuple(map(_party, row.holders[:PARTIES])),
    )


def _party(party: NativeParty) -> PartyLine:
    stack = tuple(map(_frame, party.stack[:FRAMES]))
    if party.site is not None:
        place = f"{short_path(party.site.filename)}:{party.site.line}"
        return PartyLine(name(party.site.function), place, party.seconds, stack)
    first = stack[0] if stack else StackLine("a thread without Python code", "", True)
    return PartyLine(first.function, first.place, party.seconds, stack)


def _frame(frame: Frame) -> StackLine:
    if frame.line:
        place = f"{short_path(frame.filename)}:{frame.line}"
        return StackLine(name(frame.function), place, is_native=False)
    file = PurePosixPath(frame.filename).name or "the program"
    return StackLine(name(frame.function), file, is_native=True)
