"""The numbers behind a sweep's plots: one row per point, and one row per variant.

Ratios are taken within a variant, against its point with the fewest threads; the recorder's own
cost is the traced repeat against the median of the untraced ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class PointRow:
    """One point of the sweep. Absent figures are None."""

    variant: str
    threads: int
    median_s: float
    low_s: float
    high_s: float
    runs_s: tuple[float, ...]
    speedup: float
    """Throughput against the variant's point with the fewest threads."""
    traced_s: float | None
    tracing_cost: float | None
    """Share of the median by which the traced repeat was slower; negative if it was quicker."""
    tracing_visible: bool
    """The traced repeat lies outside the range of several untraced ones."""
    cpu_s: float | None
    cores_busy: float | None
    hold_s: float | None
    switches: int | None
    involuntary: int | None


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One variant: its points by thread count, and what the fit says."""

    variant: str
    points: Mapping[int, PointRow]
    best: PointRow
    fit: Mapping[str, Any] | None
    bound: Mapping[str, Any] | None


def point_rows(result: Mapping[str, Any]) -> tuple[PointRow, ...]:
    """Rows in the order of variants, then threads; points that were not measured are left out."""
    order = {variant: index for index, variant in enumerate(result["variants"])}
    measured = sorted(
        (point for point in result["points"] if point.get("wall_s")),
        key=lambda point: (order.get(point["variant"], len(order)), point["threads"]),
    )
    first: dict[str, float] = {}
    rows = []
    for point in measured:
        throughput = (point.get("work") or 1) / point["wall_s"]["median"]
        base = first.setdefault(point["variant"], throughput)
        rows.append(_row(point, throughput / base))
    return tuple(rows)


def variant_rows(result: Mapping[str, Any]) -> tuple[VariantRow, ...]:
    """Rows in the order of the variants."""
    rows = point_rows(result)
    found = []
    for variant in result["variants"]:
        points = {row.threads: row for row in rows if row.variant == variant}
        if points:
            best = min(points.values(), key=lambda row: row.median_s)
            found.append(
                VariantRow(
                    variant,
                    points,
                    best,
                    _of_variant(result.get("fits", ()), variant),
                    _of_variant(result.get("bounds", ()), variant),
                )
            )
    return tuple(found)


def thread_counts(rows: tuple[VariantRow, ...]) -> tuple[int, ...]:
    """All thread counts measured, ascending."""
    return tuple(sorted({threads for row in rows for threads in row.points}))


def _row(point: Mapping[str, Any], speedup: float) -> PointRow:
    wall = point["wall_s"]
    traced, cpu = point.get("traced_wall_s"), point.get("cpu_s")
    voluntary, involuntary = point.get("voluntary_switches"), point.get("involuntary_switches")
    return PointRow(
        point["variant"],
        point["threads"],
        wall["median"],
        wall["low"],
        wall["high"],
        tuple(wall["runs"]),
        speedup,
        traced,
        traced / wall["median"] - 1 if traced and wall["median"] else None,
        traced is not None and len(wall["runs"]) > 1 and not wall["low"] <= traced <= wall["high"],
        cpu,
        cpu / wall["median"] if cpu and wall["median"] else None,
        point.get("hold_s"),
        voluntary + involuntary if voluntary is not None and involuntary is not None else None,
        involuntary,
    )


def _of_variant(entries: Any, variant: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = next(
        (entry for entry in entries if entry["variant"] == variant), None
    )
    return found
