"""Read thread counts and measurements from CSV, JSON or the command line.

It accepts what people have at hand: a table with a header, JSON in any of its obvious shapes, or
`1=8:12 2=8:46 4=10:40`. It settles no meaning that the text does not say (see `measurements`).
Every complaint names the line or the item.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contention_lab.scaling.errors import AmbiguousWorkError, ScalingError
from contention_lab.scaling.measurements import KINDS, WORKS, Kind, Measurements, Work, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

THREADS: Final = "threads"
SECONDS_NAMES: Final = ("time", "seconds", "time_s", "wall_s")
THROUGHPUT_NAMES: Final = ("throughput", "rate")
CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)")
DELIMITERS: Final = (",", ";", "\t")

Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True)
class Table:
    """What a text says: points, and as much of their meaning as it gives.

    Attributes
    ----------
    points
        (threads, value) as written.
    kind, work, unit
        None where the text does not say.
    """

    points: tuple[tuple[float, float], ...]
    kind: Kind | None = None
    work: Work | None = None
    unit: str | None = None

    def measured(self, *, kind: Kind | None = None, work: Work | None = None) -> Measurements:
        """Settle what the values mean; what is told here goes before what the text says.

        Raises
        ------
        AmbiguousWorkError
            Where neither says what was measured, and it matters.
        ScalingError
            Where there are no points, or the values are of no known kind.
        """
        settled = kind or self.kind
        if settled is None:
            raise AmbiguousWorkError(
                "these values can be times or throughputs: say --kind time or --kind throughput"
            )
        if not self.points:
            raise ScalingError("no points: give at least one line such as 1,492")
        counts, values = zip(*self.points, strict=True)
        return measured(counts, values, kind=settled, work=work or self.work, unit=self.unit)


def read_text(text: str, source: str) -> Table:
    """Read CSV or JSON.

    Parameters
    ----------
    text
        The whole file.
    source
        What it is called in complaints.

    Raises
    ------
    ScalingError
        One line that names what cannot be read.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if not stripped:
        raise ScalingError(f"{source}: empty; give a table with the header threads,time")
    if stripped[0] in "[{":
        try:
            document = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise ScalingError(f"{source}: not JSON: {error}") from error
        return _from_json(document, source)
    return _from_csv(stripped, source)


def read_literals(items: Sequence[str]) -> Table:
    """Read `THREADS=TIME` items, as typed on a command line: times, unless told otherwise."""
    points = []
    for item in items:
        count, equals, value = item.partition("=")
        if not equals:
            raise ScalingError(f"{item!r}: expected THREADS=TIME, such as 4=10:40")
        points.append((_number(count, item), _value(value, item)))
    return Table(tuple(points), "time")


def is_literal(item: str) -> bool:
    """Whether a word of a command line is a point rather than the name of a file."""
    return re.match(r"\s*[\d.]+(e\d+)?\s*=", item) is not None


def parse_time(text: str) -> float:
    """Return the seconds that `492`, `8:12` or `1:02:03.5` stand for.

    Raises
    ------
    ValueError
        Where it is none of these.
    """
    stripped = text.strip()
    clock = CLOCK.fullmatch(stripped)
    if clock is None:
        return float(stripped)
    hours, minutes, seconds = clock.groups()
    if float(seconds) >= 60 or (hours is not None and int(minutes) >= 60):
        raise ValueError(f"{stripped!r}: minutes and seconds end at 59")
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)


def _value(text: str, where: str) -> float:
    try:
        return parse_time(text)
    except ValueError:
        raise ScalingError(
            f"{where}: {text.strip()!r} is no number: give seconds, m:ss or h:mm:ss"
        ) from None


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScalingError(f"{where}: {text.strip()!r} is no thread count") from None


def _kind_of(name: str) -> Kind | None:
    lowered = name.strip().lower()
    if lowered in SECONDS_NAMES:
        return "time"
    return "throughput" if lowered in THROUGHPUT_NAMES else None


def _from_csv(text: str, source: str) -> Table:
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise ScalingError(f"{source}: only comments; give a table with the header threads,time")
    header_line = lines[0][1]
    delimiter = next((mark for mark in DELIMITERS if mark in header_line), ",")
    header = [name.strip().lower() for name in header_line.split(delimiter)]
    value_columns = [index for index, name in enumerate(header) if _kind_of(name) is not None]
    if THREADS not in header or len(value_columns) != 1:
        raise ScalingError(
            f"{source}: the first line must name the columns: threads,time or threads,throughput "
            f"(it is {header_line.strip()[:60]!r})"
        )
    count_column, value_column = header.index(THREADS), value_columns[0]
    points = []
    for number, line in lines[1:]:
        row = next(csv.reader([line], delimiter=delimiter))
        where = f"{source} line {number}"
        if len(row) <= max(count_column, value_column):
            raise ScalingError(f"{where}: {len(row)} columns, the header has {len(header)}")
        points.append((_number(row[count_column], where), _value(row[value_column], where)))
    return Table(tuple(points), _kind_of(header[value_column]))


def _from_json(document: Any, source: str) -> Table:
    if isinstance(document, list):
        return _from_rows(document, source, {})
    if "points" in document:
        return _from_rows(document["points"], source, document)
    kind = next((name for name in document if _kind_of(name) is not None), None)
    if THREADS in document and kind is not None:
        counts, values = document[THREADS], document[kind]
        if not isinstance(counts, list) or not isinstance(values, list):
            raise ScalingError(f"{source}: {THREADS!r} and {kind!r} must be lists")
        if len(counts) != len(values):
            raise ScalingError(
                f"{source}: {len(counts)} thread counts and {len(values)} values: one for each"
            )
        return _from_rows(
            list(zip(counts, values, strict=True)), source, {"kind": _kind_of(kind), **document}
        )
    raise ScalingError(
        f'{source}: expected {{"threads": [...], "time": [...]}}, or a list of points'
    )


def _from_rows(rows: Any, source: str, facts: dict[str, Any]) -> Table:
    if not isinstance(rows, list):
        raise ScalingError(f"{source}: 'points' must be a list")
    kind = _one_of(facts.get("kind"), KINDS, "kind", source)
    points = []
    for index, row in enumerate(rows, 1):
        where = f"{source} point {index}"
        if isinstance(row, dict):
            name = next((name for name in row if _kind_of(name) is not None), None)
            if THREADS not in row or name is None:
                raise ScalingError(f'{where}: needs "threads" and "time" or "throughput"')
            if kind is not None and _kind_of(name) != kind:
                raise ScalingError(f"{where}: {name!r} among values of kind {kind!r}")
            kind = _kind_of(name)
            row = (row[THREADS], row[name])
        if not isinstance(row, list | tuple) or len(row) != 2:
            raise ScalingError(f"{where}: expected [threads, value]")
        points.append((_number(_text(row[0], where), where), _value(_text(row[1], where), where)))
    unit = facts.get("unit")
    work = _one_of(facts.get("work"), WORKS, "work", source)
    return Table(tuple(points), kind, work, unit if isinstance(unit, str) else None)


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ScalingError(f"{where}: {str(value)[:40]!r} is no number")
    return str(value)


def _one_of(value: Any, allowed: tuple[Choice, ...], name: str, source: str) -> Choice | None:
    if value is None:
        return None
    for choice in allowed:
        if value == choice:
            return choice
    raise ScalingError(f"{source}: {name!r} is {str(value)[:40]!r}: give {' or '.join(allowed)}")
