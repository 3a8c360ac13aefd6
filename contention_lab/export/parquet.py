"""Parquet: the table of all waits and holds, for data frames and databases.

Needs pyarrow, the extra `parquet`. Columns are those of `event_table`; texts are dictionaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from contention_lab.export.event_table import TextColumn, event_table
from contention_lab.export.export_format import ExportError, ExportFormat

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:  # noqa: ARG001
    """Write all events in the order of their start.

    Raises
    ------
    ExportError
        pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ExportError(
            "format parquet needs pyarrow, which is not installed: pip install "
            "'contention-lab[parquet]', or take --format csv"
        ) from error
    columns = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(column.codes.astype("int32")), pa.array(column.texts, pa.string())
        )
        if isinstance(column, TextColumn)
        else pa.array(column)
        for name, column in event_table(trace).items()
    }
    table = pa.table(columns).replace_schema_metadata(
        {"contention_lab": str(trace.meta.get("package_version", ""))}
    )
    pq.write_table(table, sink, compression="zstd")


FORMAT: Final = ExportFormat("parquet", ".parquet", "pandas, Polars or DuckDB", write)
