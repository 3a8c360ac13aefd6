"""Print the locks of a trace, the most waited for first.

Waiting is the sum over all threads; the wait for the GIL after a lock was acquired is not in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from contention_lab.cli.failure import reported, warn

if TYPE_CHECKING:
    from contention_lab.analysis import LockRow

_COLUMNS = ("wait", "spin", "park", "GIL", "p99", "max", "held", "used", "acquires", "contended")


@click.command(name="top", help=__doc__)
@click.argument("path", metavar="FILE.clt", type=click.Path(path_type=Path))
@click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True)
def command(path: Path, rows: int) -> None:
    """Print the table."""
    from contention_lab.analysis import lock_table
    from contention_lab.trace import TraceError, load

    with reported(TraceError):
        trace = load(path)
    table = lock_table(trace)
    lines = [("lock", *_COLUMNS), *map(_cells, table[:rows])]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        first = f"{line[0]:<{widths[0]}}"
        rest = (f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        click.echo("  ".join((first, *rest)))
    warn(trace.problems)
    if len(table) > rows:
        click.echo(f"{len(table) - rows} more locks; show them with -n {len(table)}", err=True)
    elif not table:
        click.echo("no lock was used while this was recorded", err=True)


def _cells(row: LockRow) -> tuple[str, ...]:
    from contention_lab.report.quantity import count, seconds, share
    from contention_lab.report.visible_text import name

    times = (row.wait_s, row.spin_s, row.park_s, row.gil_s, row.wait_p99_s, row.wait_max_s)
    cells = (
        *map(seconds, (*times, row.hold_s)),
        share(row.utilisation),
        count(row.acquires),
        count(row.contended),
    )
    plain = (cell.replace("\N{NARROW NO-BREAK SPACE}", " ") for cell in cells)
    return (name(row.lock.label), *plain)
