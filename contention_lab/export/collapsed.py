"""Collapsed stacks: `outer;inner;lock 1234`, one line for each stack, in nanoseconds.

The text that `flamegraph.pl`, inferno and speedscope read. A semicolon within a name would split
it, so it becomes a comma.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from contention_lab.analysis.weighted_stacks import weighted_stacks
from contention_lab.export.export_format import ExportFormat
from contention_lab.export.step_names import step_name

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:
    """Write the stacks of a view (`victim` by default), in the order of their text."""
    totals: dict[str, int] = {}
    for stack in weighted_stacks(trace, view or "victim"):
        text = ";".join(step_name(step).replace(";", ",") for step in stack.steps)
        totals[text] = totals.get(text, 0) + stack.ns
    for text, ns in sorted(totals.items()):
        sink.write(f"{text} {ns}\n".encode())


FORMAT: Final = ExportFormat(
    "collapsed", ".collapsed.txt", "inferno, flamegraph.pl or speedscope", write, by_view=True
)
