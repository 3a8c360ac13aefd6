"""Fit scaling laws to thread counts and times or throughputs, and say what follows.

DATA is a CSV or JSON file, `-` for standard input, or points such as 1=8:12 2=8:46 4=10:40. A CSV
file starts with the header threads,time or threads,throughput; a count may be repeated. Times are
seconds, m:ss or h:mm:ss.

The verdict goes to standard error; laws and predictions go to standard output.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.number import Number, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.scaling.conclusion import Conclusion
    from contention_lab.scaling.measurements import Kind, Work
    from contention_lab.scaling.reading import Table


@click.command(name="fit", help=__doc__)
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--work",
    type=click.Choice(["fixed", "per-thread"]),
    help="fixed: one amount of work over all threads, or the rate of all threads; per-thread: "
    "every thread does the same amount, or the rate of one thread.",
)
@click.option(
    "--kind",
    type=click.Choice(["time", "throughput"]),
    help="What the values are, where the data do not say; points on the command line are times.",
)
@click.option("--at", metavar="N,N,...", help="Predict these thread counts.")
@click.option("--cores", type=Number(1), help="Cores of the machine measured.")
@click.option(
    "--draws",
    type=Whole(64, 100_000),
    default=2048,
    show_default=True,
    help="Draws of the bootstrap behind the intervals.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(
    data: tuple[str, ...],
    work: Work | None,
    kind: Kind | None,
    at: str | None,
    cores: float | None,
    draws: int,
    as_json: bool,
) -> None:
    """Read, conclude, print."""
    import json

    from contention_lab.scaling.conclusion import conclude
    from contention_lab.scaling.errors import AmbiguousWorkError, ScalingError

    with reported(ScalingError):
        try:
            table = _table(data)
            measurements = table.measured(kind=kind, work=work)
        except AmbiguousWorkError as error:
            raise click.UsageError(str(error)) from error
        conclusion = conclude(
            measurements, at=None if at is None else _counts(at), cores=cores, draws=draws
        )
    if as_json:
        click.echo(json.dumps(conclusion.to_json(), indent=2, allow_nan=False))
        return
    _print(conclusion)


def _table(data: Sequence[str]) -> Table:
    from pathlib import Path

    from contention_lab.scaling.reading import is_literal, read_literals, read_text

    if all(is_literal(item) for item in data):
        return read_literals(data)
    if len(data) > 1:
        raise click.UsageError("give one file, '-', or only points such as 1=8:12 2=8:46")
    if data[0] == "-":
        return read_text(sys.stdin.read(), "standard input")
    try:
        return read_text(Path(data[0]).read_text(encoding="utf-8"), data[0])
    except FileNotFoundError as error:
        raise click.ClickException(
            f"{data[0]}: No such file or directory, and no point such as 1=8:12; check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{data[0]}: not text: give CSV or JSON") from error


def _counts(text: str) -> list[float]:
    try:
        counts = [float(item) for item in text.split(",")]
    except ValueError:
        counts = []
    if not counts or not all(0 < count < 1e9 for count in counts):
        raise click.UsageError(f"--at {text!r}: give thread counts such as 16,32,64")
    return counts


def _print(conclusion: Conclusion) -> None:
    verdict = conclusion.verdict
    click.echo(verdict.summary, err=True)
    for line in verdict.lines:
        click.echo(f"  {line}", err=True)
    if verdict.notes:
        click.echo("what these numbers do not tell", err=True)
        for note in verdict.notes:
            click.echo(f"  {note}", err=True)
    for row in conclusion.table_lines():
        click.echo(row)
    click.echo(f"next: {verdict.next}", err=True)
