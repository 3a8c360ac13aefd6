"""What a format is: a name, a suffix, and a function from a trace to bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace


class ExportError(Exception):
    """A trace that cannot be written so; one line: what, why, what to do."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format that traces can be written in.

    Attributes
    ----------
    name
        As typed after `--format`.
    suffix
        Of its files, with the dot.
    opens_with
        What people open it with, for the help and the closing line.
    write
        Writes a trace to a sink. The view is the one asked for, None if none was.
    by_view
        It holds stacks of one view, so that `--view` chooses.
    """

    name: str
    suffix: str
    opens_with: str
    write: Callable[[Trace, BinaryIO, View | None], None]
    by_view: bool = False
