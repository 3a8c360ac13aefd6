"""Compare two recordings, or two folders of repeats: what became better or worse.

BEFORE and AFTER are each a trace, or a folder whose traces are repeats of one version. Intervals
need two repeats or more on both sides, and are of 95 % confidence for all locks together; without
them a difference is told and no claim is made that it would come again. With -o the comparison
becomes a page, too, whose flame graphs show what is more, less, new and gone.

A condition for --fail-on is a quantity (wait, spin, gil, held, p99, max, contended, acquires or
wall), a lock in brackets if it is not all of them, and a limit: 'wait>+20%', 'p99[Catalog]>5ms',
'wall>+1s'. The exit status is 3 if one is violated.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from contention_lab.cli.failure import loaded, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.comparison import Comparison, Difference
    from contention_lab.trace import Trace

VIOLATED: Final = 3
_SHOWN: Final = 8


@click.command(name="diff", help=__doc__)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--fail-on", "conditions", multiple=True, metavar="CONDITION", help="See above.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what became of the conditions as JUnit XML.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PAGE.html",
    help="Write a page with difference flame graphs, too; its path is printed.",
)
@click.option("--open", "show", is_flag=True, help="Open the page in a browser; needs -o.")
@click.option("--all", "show_all", is_flag=True, help=f"Show all rows, not the first {_SHOWN}.")
def command(
    before: Path,
    after: Path,
    as_json: bool,
    conditions: tuple[str, ...],
    junit: Path | None,
    output: Path | None,
    show: bool,
    show_all: bool,
) -> None:
    """Print the comparison."""
    from contention_lab.cli.page_file import keep_other_files, open_page
    from contention_lab.comparison import Condition, ConditionError, compare
    from contention_lab.comparison.junit import junit_xml
    from contention_lab.report.visible_text import visible
    from contention_lab.trace import TraceError

    try:
        limits = [Condition.parse(text) for text in conditions]
    except ConditionError as error:
        raise click.UsageError(f"--fail-on {error}") from error
    if junit is not None and not limits:
        raise click.UsageError("--junit: give what to test, too: --fail-on 'wait>+20%'")
    if show and output is None:
        raise click.UsageError("--open: say where the page goes: -o diff.html")
    with reported(TraceError, ConditionError):
        sides = _traces(before), _traces(after)
        comparison = compare(*sides)
        outcomes = [limit.check(comparison) for limit in limits]
        if junit is not None:
            junit.write_text(junit_xml(outcomes, "contention-lab diff"), encoding="utf-8")
        if output is not None:
            from contention_lab.report import diff_page

            keep_other_files(output)
            names = before.name, after.name
            output.write_text(diff_page(*sides, names, comparison, outcomes), encoding="utf-8")
    click.echo(visible(_headline(comparison)), err=True)
    if any(comparison.dropped):
        lost = "{} before, {} after".format(*comparison.dropped)
        click.echo(f"warning: events were dropped: {lost}", err=True)
    if as_json:
        found = comparison.to_json() | {"conditions": [one.to_json() for one in outcomes]}
        click.echo(json.dumps(found, indent=2))
    else:
        _print(comparison, None if show_all else _SHOWN)
    for outcome in outcomes:
        verdict = "FAILED" if outcome.failed else "passed"
        click.echo(visible(f"{verdict}: {outcome.condition}: {outcome.reason}"), err=True)
    if output is not None:
        click.echo(output, err=as_json)
        if show:
            open_page(output)
    else:
        words = shlex.join(["contention-lab", "diff", str(before), str(after), "-o", "diff.html"])
        click.echo(f"next: {words}", err=True)
    if any(outcome.failed for outcome in outcomes):
        raise click.exceptions.Exit(VIOLATED)


def _traces(path: Path) -> list[Trace]:
    """Load a trace, or all of a folder."""
    if not path.is_dir():
        return loaded([path])
    found = sorted(path.glob("*.clt"))
    if not found:
        raise click.ClickException(
            f"{path}: no .clt file in this folder; record some: contention-lab record "
            f"-o {path / 'run1.clt'} PROGRAM"
        )
    return loaded(found)


def _headline(comparison: Comparison) -> str:
    """Return the answer in a sentence."""
    waited = comparison.totals["wait"]
    figures = f"{_seconds(waited.before)} before, {_seconds(waited.after)} after{_ratio(waited)}"
    if not comparison.has_intervals:
        alone = "one run on a side: whether it would come again, repeats would tell"
        return f"Waiting for locks: {figures}; {alone}."
    runs = "{} and {} runs".format(*comparison.runs)
    return f"Waiting for locks: {comparison.word}: {figures}{_interval(waited)} ({runs})."


def _print(comparison: Comparison, most: int | None) -> None:
    from contention_lab.report.visible_text import name

    head = ("lock", "before", "after", "change", "")
    rows = [(name(one.label), *_cells(one.wait)) for one in comparison.locks]
    _table("waiting by lock", head, rows, most)
    for role, title in (("victim", "by who waits"), ("culprit", "by who makes them wait")):
        rows = [
            (f"{name(place.function)} ({name(place.file)}) {name(place.lock.name)}", *_cells(found))
            for place, found in comparison.places
            if place.role == role
        ]
        _table(f"waiting {title}", ("place, lock", *head[1:]), rows, most)
    wall = comparison.totals["wall"]
    click.echo(
        f"recorded for {_seconds(wall.before)} before, {_seconds(wall.after)} after"
        f"{_ratio(wall)}{_interval(wall)}"
    )


def _table(
    title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], most: int | None
) -> None:
    if not rows:
        return
    click.echo(title)
    shown = rows[:most]
    widths = [max(len(row[at]) for row in (head, *shown)) for at in range(len(head))]
    for row in (head, *shown):
        first = f"  {row[0]:<{widths[0]}}"
        rest = (f"{cell:>{width}}" for cell, width in zip(row[1:4], widths[1:4], strict=True))
        click.echo("  ".join((first, *rest, row[4])).rstrip())
    if len(rows) > len(shown):
        click.echo(f"  {len(rows) - len(shown)} more: --all shows them")


def _cells(found: Difference) -> tuple[str, str, str, str]:
    from contention_lab.comparison.compared import LEAST_S

    change = f"{_signed(found.change)}{_ratio(found)}{_interval(found)}"
    return _seconds(found.before), _seconds(found.after), change, found.word(LEAST_S)


def _ratio(found: Difference) -> str:
    return f" ({found.in_times})" if found.in_times else ""


def _interval(found: Difference) -> str:
    if found.low is None or found.high is None:
        return ""
    return f", {_signed(found.low)} to {_signed(found.high)}"


def _signed(value: float) -> str:
    from contention_lab.diagnosis.wording import duration

    return f"{'-' if value < 0 else '+'}{duration(abs(value))}"


def _seconds(value: float) -> str:
    from contention_lab.diagnosis.wording import duration

    return duration(value)
