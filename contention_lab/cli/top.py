"""Print the locks of a trace, or of a running process, the most waited for first.

With a process's number in place of a file, it is sampled as `attach` does, and the table is made
anew each second until Ctrl-C: how many threads wait, how much of the time anybody does, and where
whoever has the lock seems to be. So it is of a trace of samples.

Waiting is the sum over all threads; the wait for the GIL after a lock was acquired is not in it.
Locks of one name that were made at one place are one row; `--instances` tells them apart. Where
every wait for the GIL was recorded, it is a row as well, with the share of the time that anybody
had it. So are locks of native code, of which only waits are seen: those of libraries and of the
interpreter; `--stack` finds functions of native code as well.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from contention_lab.cli.failure import ended_by_signals, reported, warn
from contention_lab.cli.number import Whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contention_lab.analysis import LockRow
    from contention_lab.trace import Trace

_COLUMNS: Final = {
    "wait": "wait_s",
    "spin": "spin_s",
    "park": "park_s",
    "GIL": "gil_s",
    "p50": "wait_p50_s",
    "p99": "wait_p99_s",
    "max": "wait_max_s",
    "held": "hold_s",
    "used": "utilisation",
    "acquires": "acquires",
    "contended": "contended",
    "failed": "failed_tries",
    "threads": "threads",
}
"""Columns by what they show of a `LockRow`."""

_NEEDS_RECORDS: Final = frozenset({"wait_p50_s", "wait_p99_s", "hold_s", "utilisation"})
"""Figures that are absent at level `counters`, which records no single wait and times no hold."""

_TEXTS: Final = ("lock", "type", "made")
_SORTABLE: Final = {name.lower(): name for name in (*_TEXTS, "locks", *_COLUMNS)}


@click.command(name="top", help=__doc__)
@click.argument("path", metavar="FILE.clt|PID", type=click.Path(path_type=Path))
@click.option("-n", "--rows", type=Whole(1), help="How many.  [default: 20; with -x all]")
@click.option(
    "-s",
    "--sort",
    "column",
    type=click.Choice([*_SORTABLE], case_sensitive=False),
    default="wait",
    show_default=True,
    metavar="COLUMN",
    help=f"Order by a column, the largest first: {', '.join(_SORTABLE)}.",
)
@click.option("-r", "--reverse", is_flag=True, help="The smallest first.")
@click.option(
    "--lock", default="", metavar="TEXT", help="Only locks whose name, type or place has it."
)
@click.option("--thread", default="", metavar="TEXT", help="Only threads whose name has it.")
@click.option(
    "--stack", default="", metavar="TEXT", help="Only waits and holds under such a frame."
)
@click.option("--instances", is_flag=True, help="One row for each lock, not for each place.")
@click.option(
    "-x",
    "--separator",
    metavar="CHARACTER",
    help="Print exact figures, in seconds, separated by it: `-x,` for CSV.",
)
def command(
    path: Path,
    rows: int | None,
    column: str,
    reverse: bool,
    lock: str,
    thread: str,
    stack: str,
    instances: bool,
    separator: str | None,
) -> None:
    """Print the table."""
    from contention_lab.analysis import by_site, lock_table, selected
    from contention_lab.analysis.gil_row import gil_row
    from contention_lab.analysis.native_row import native_rows
    from contention_lab.analysis.native_selection import NativeSelection
    from contention_lab.trace import Level, TraceError, load, not_seen

    if separator is not None and len(separator) != 1:
        raise click.UsageError(f"-x {separator!r}: give one character, as in -x,")
    if str(path).isdecimal() and not path.exists():
        _watch(int(str(path)), rows or 20)
        return
    with reported(TraceError):
        trace = load(path)
    if trace.is_sampled:
        _print_sampled(trace, rows or 20)
        return
    absent = _NEEDS_RECORDS if trace.level == Level.COUNTERS else frozenset()
    chosen = selected(trace, lock=lock, thread=thread, stack=stack)
    found = [*(lock_table(chosen) if instances else map(_each, lock_table(by_site(chosen))))]
    gil = gil_row(chosen)
    if gil is not None and lock.casefold() in f"{gil.lock.name} {gil.lock.type}".casefold():
        found.append(gil)
    native = native_rows(trace, NativeSelection(thread, stack))
    texts = [f"{row.lock.label} {row.lock.type}".casefold() for row in native]
    found += [row for row, text in zip(native, texts, strict=True) if lock.casefold() in text]
    table = _sorted(found, _SORTABLE[column.lower()], reverse)
    if separator is not None:
        click.echo(_separated(table[:rows], separator, instances, absent), nl=False)
    else:
        _print(table[: rows or 20], instances, absent)
    warn(trace.problems)
    for sentence in _splits(row for row in table[:rows] if row in native):
        click.echo(sentence, err=True)
    left = len(table) - (rows or 20)
    if left > 0 and separator is None:
        click.echo(f"{left} more; show them with -n {len(table)}", err=True)
    elif not table:
        filtered = any((lock, thread, stack))
        what = "no lock matches" if filtered else "no lock was used while this was recorded"
        click.echo(what, err=True)
    if stack and table:
        click.echo(
            "with --stack, only what was recorded one by one counts: blocking waits and holds",
            err=True,
        )
    for sentence in not_seen(trace)[:3]:
        click.echo(f"not recorded: {sentence}", err=True)


def _watch(pid: int, most: int) -> None:
    from contention_lab.cli.sampled_table import watch
    from contention_lab.sampling.refusal import AttachError

    with ended_by_signals() as goes_on, reported(AttachError):
        watch(pid, most, goes_on)


def _print_sampled(trace: Trace, most: int) -> None:
    from contention_lab.cli.sampled_table import doings, lines, sampled_rows

    click.echo(f"samples, not a recording; {doings(trace)}", err=True)
    for line in lines(sampled_rows(trace), most):
        click.echo(line)
    warn(trace.problems)


def _splits(native: Iterable[LockRow]) -> Iterator[str]:
    """Say how the waiting for locks of native code divides, where threads both spin and sleep."""
    from contention_lab.diagnosis.wording import duration

    for row in native:
        if row.spin_s and row.park_s:
            yield (
                f"{row.lock.label}: waited for {duration(row.spin_s)} spinning (sched_yield) and "
                f"{duration(row.park_s)} parked"
            )


def _each(row: LockRow) -> LockRow:
    """Return the row of several locks with the share of the time that one of them was held."""
    return replace(row, utilisation=row.utilisation / row.lock.instance)


def _sorted(table: Iterable[LockRow], column: str, reverse: bool) -> list[LockRow]:
    def key(row: LockRow) -> Any:
        if column == "lock":
            return row.lock.label
        if column == "type":
            return row.lock.type
        if column == "made":
            return row.lock.site.place if row.lock.site else ""
        return row.lock.instance if column == "locks" else getattr(row, _COLUMNS[column])

    descending = (column not in _TEXTS) != reverse
    return sorted(table, key=key, reverse=descending)


def _print(table: Sequence[LockRow], instances: bool, absent: frozenset[str]) -> None:
    head = ("lock", *(() if instances else ("locks",)), *_COLUMNS)
    labels = Counter(row.lock.label for row in table)
    cells = (_cells(row, instances, labels[row.lock.label] > 1, absent) for row in table)
    lines = [head, *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        first = f"{line[0]:<{widths[0]}}"
        rest = (f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        click.echo("  ".join((first, *rest)))


def _cells(
    row: LockRow, instances: bool, ambiguous: bool, absent: frozenset[str]
) -> tuple[str, ...]:
    from contention_lab.report.quantity import count, seconds, share
    from contention_lab.report.visible_text import name

    cells = [] if instances else [count(row.lock.instance)]
    absent |= _unseen(row)
    for field in _COLUMNS.values():
        value = None if field in absent else getattr(row, field)
        written = seconds if field.endswith("_s") else share if field == "utilisation" else count
        cells.append(written(value))
    plain = (cell.replace("\N{NARROW NO-BREAK SPACE}", " ") for cell in cells)
    kind = f" ({row.lock.type})" if ambiguous and not instances else ""
    return (name(row.lock.label + kind), *plain)


def _unseen(row: LockRow) -> frozenset[str]:
    from contention_lab.analysis.native_row import UNSEEN, is_native

    return UNSEEN if is_native(row) else frozenset()


def _separated(
    table: Iterable[LockRow], separator: str, instances: bool, absent: frozenset[str]
) -> str:
    from contention_lab.report.visible_text import visible

    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=separator, lineterminator="\n")
    writer.writerow([*_TEXTS, "instance" if instances else "locks", *_COLUMNS.values()])
    for row in table:
        site = row.lock.site
        made = f"{site.filename}:{site.line}" if site else ""
        fields, unseen = _COLUMNS.values(), absent | _unseen(row)
        figures = ("" if field in unseen else getattr(row, field) for field in fields)
        texts = map(visible, (row.lock.label, row.lock.type, made))
        writer.writerow([*texts, row.lock.instance, *figures])
    return sink.getvalue()
