"""All formats: to add one, write its file and name it here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.export import (
    collapsed,
    csv_table,
    firefox,
    openmetrics,
    parquet,
    perfetto,
    pprof,
    speedscope,
)

if TYPE_CHECKING:
    from contention_lab.export.export_format import ExportFormat

FORMATS: Final[dict[str, ExportFormat]] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        perfetto,
        speedscope,
        pprof,
        collapsed,
        firefox,
        csv_table,
        parquet,
        openmetrics,
    )
}
"""By name, in the order of the help."""
