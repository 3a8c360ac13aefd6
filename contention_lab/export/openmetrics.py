"""OpenMetrics text: totals of every lock, for Prometheus and what speaks like it.

The text is that of https://prometheus.io/docs/specs/om/open_metrics_spec/. Locks made at one place
under one name are one series, since a series per object is what breaks such a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from contention_lab.analysis import by_site, lock_table
from contention_lab.export.export_format import ExportFormat
from contention_lab.report.visible_text import name, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contention_lab.analysis.lock_table import LockRow
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Lock, Trace

_PREFIX: Final = "contention_lab_lock"

_METRICS: Final[tuple[tuple[str, str, str, str, Callable[[LockRow], float]], ...]] = (
    ("acquires", "counter", "", "Successful attempts to acquire.", lambda row: row.acquires),
    ("contended", "counter", "", "Blocking attempts that waited.", lambda row: row.contended),
    ("timed_out", "counter", "", "Attempts that gave up.", lambda row: row.timed_out),
    (
        "failed_tries",
        "counter",
        "",
        "Attempts without blocking that found it held.",
        lambda row: row.failed_tries,
    ),
    (
        "wait_seconds",
        "counter",
        "seconds",
        "Waiting, all threads together, without the GIL.",
        lambda row: row.wait_s,
    ),
    ("spin_seconds", "counter", "seconds", "Of it: spinning.", lambda row: row.spin_s),
    (
        "gil_seconds",
        "counter",
        "seconds",
        "Waiting for the GIL with the lock already acquired.",
        lambda row: row.gil_s,
    ),
    ("hold_seconds", "counter", "seconds", "Held.", lambda row: row.hold_s),
    ("wait_max_seconds", "gauge", "seconds", "The longest wait.", lambda row: row.wait_max_s),
    ("hold_max_seconds", "gauge", "seconds", "The longest hold.", lambda row: row.hold_max_s),
    ("instances", "gauge", "", "Locks in this series.", lambda row: row.lock.instance),
)
"""Metrics: name, type, unit, help, and the figure of a row."""


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:  # noqa: ARG001
    """Write one sample for each metric and lock."""
    rows = lock_table(by_site(trace))
    labelled = [*zip(_labels([row.lock for row in rows]), rows, strict=True)]
    for metric, kind, unit, text, figure in _METRICS:
        sink.write(f"# TYPE {_PREFIX}_{metric} {kind}\n".encode())
        if unit:
            sink.write(f"# UNIT {_PREFIX}_{metric} {unit}\n".encode())
        sink.write(f"# HELP {_PREFIX}_{metric} {text}\n".encode())
        suffix = "_total" if kind == "counter" else ""
        for labels, row in labelled:
            sink.write(f"{_PREFIX}_{metric}{suffix}{{{labels}}} {figure(row)!r}\n".encode())
    sink.write(b"# EOF\n")


def _labels(locks: list[Lock]) -> Iterator[str]:
    """Yield the labels of each lock, no two alike."""
    seen: dict[tuple[str, str, str], int] = {}
    for lock in locks:
        made = f"{visible(lock.site.filename)}:{lock.site.line}" if lock.site else ""
        key = name(lock.label), name(lock.type), made
        seen[key] = seen.get(key, 0) + 1
        pairs = [*zip(("lock", "type", "made"), key, strict=True)]
        if seen[key] > 1:
            pairs.append(("number", str(seen[key])))
        yield ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


FORMAT: Final = ExportFormat("openmetrics", ".om.txt", "Prometheus", write)
