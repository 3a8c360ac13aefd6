"""CSV: one line for every recorded wait and hold.

Columns are those of `event_table`; the first line names them. Texts that a spreadsheet would take
for a formula are left as they are: the file is for programs.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, BinaryIO, Final

from contention_lab.export.event_table import TextColumn, event_table
from contention_lab.export.export_format import ExportFormat

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace

_BLOCK: Final = 1 << 16
"""Lines written at a time: bounds memory."""


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:  # noqa: ARG001
    """Write all events in the order of their start."""
    table = event_table(trace)
    sink.write((",".join(table) + "\n").encode())
    texts = [
        [_quoted(text) for text in column.texts] if isinstance(column, TextColumn) else None
        for column in table.values()
    ]
    line = ",".join("%s" if column is not None else "%d" for column in texts) + "\n"
    events = len(next(iter(table.values())).codes)  # type: ignore[union-attr]
    for first in range(0, events, _BLOCK):
        columns = []
        for column, known in zip(table.values(), texts, strict=True):
            if isinstance(column, TextColumn):
                assert known is not None
                codes = column.codes[first : first + _BLOCK].tolist()
                columns.append([*map(known.__getitem__, codes)])
            else:
                columns.append(column[first : first + _BLOCK].tolist())
        sink.write("".join([line % row for row in zip(*columns, strict=True)]).encode())


def _quoted(text: str) -> str:
    sink = io.StringIO()
    csv.writer(sink, lineterminator="").writerow([text])
    return sink.getvalue() if text else ""


FORMAT: Final = ExportFormat("csv", ".csv", "pandas, DuckDB or a spreadsheet", write)
