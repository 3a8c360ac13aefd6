"""Sweep a scenario over thread counts, and explain what was measured on one page.

SCENARIO is a name from `contention-lab list`, or the path of a scenario file. Every point runs in a
fresh process; the report, the figures and the traces go to reports/NAME/. Ctrl-C keeps what is
finished, and `--resume` goes on from there.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.number import Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERRUPTED: Final = 130
INCOMPLETE: Final = 1


@click.command(name="run", help=__doc__)
@click.argument("wanted", metavar="SCENARIO")
@click.option("--threads", metavar="N,N,...", help="Thread counts, instead of the scenario's.")
@click.option("--repeats", type=Whole(1), metavar="N", help="Timed runs of every point.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a parameter. May be given again. The key of the variants takes several values, "
    "to compare them: --set client=global-mutex,narrow-lock.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results.  [default: reports/NAME]",
)
@click.option(
    "--quick",
    is_flag=True,
    help="One timed run of every point instead of three or more, and the scenario's smaller sizes "
    "(its [quick] table; for the shipped ones 16 trainings of 1 step). "
    "Intervals are missing and ratios are rough.",
)
@click.option(
    "--no-source",
    is_flag=True,
    help="Leave lines of the program's source out of the page.",
)
@click.option("--resume", is_flag=True, help="Keep the finished runs of an interrupted sweep.")
def command(
    wanted: str,
    threads: str | None,
    repeats: int | None,
    settings: tuple[str, ...],
    out: Path | None,
    quick: bool,
    no_source: bool,
    resume: bool,
) -> int:
    """Make the runs, write the results, and say what they mean."""
    from contention_lab.cli.progress import sweep_progress
    from contention_lab.sweep.adjustment import adjusted
    from contention_lab.sweep.catalogue import find_scenario
    from contention_lab.sweep.errors import SweepError
    from contention_lab.sweep.preview import is_predicted, predicted
    from contention_lab.sweep.runner import run_sweep

    with reported(SweepError):
        scenario = adjusted(
            find_scenario(wanted), threads=threads, repeats=repeats, settings=settings, quick=quick
        )
        folder = Path("reports") / scenario.name if out is None else out
        if scenario.predict is not None and not (resume and is_predicted(scenario, folder)):
            predicted(scenario, folder, say=lambda what: click.echo(what, err=True))
        with sweep_progress() as observer:
            outcome = run_sweep(scenario, folder, observer, resume=resume)
        if outcome.interrupted and not outcome.results:
            click.echo("interrupted before the first run had ended; nothing was measured", err=True)
            return INTERRUPTED
        from contention_lab.sweep.conclusion import conclude

        conclusion = conclude(scenario, outcome, folder, source=not no_source)
    result = conclusion.result
    _say_verdict(result)
    _say_evidence(result)
    if result["complete"]:
        slowest = max(result["points"], key=lambda point: point["wall_s"]["median"])
        trace = folder / slowest["trace"]
        click.echo(f"next: contention-lab top {shlex.quote(str(trace))}", err=True)
    else:
        again = _command_line(wanted, threads, repeats, settings, out, quick, no_source)
        click.echo(f"continue: {again} --resume", err=True)
    click.echo(conclusion.report)
    if outcome.interrupted:
        return INTERRUPTED
    return 0 if result["complete"] else INCOMPLETE


def _say_verdict(result: Mapping[str, Any]) -> None:
    from contention_lab.report.visible_text import visible

    first, *others = map(visible, result["verdict"]["lines"])
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    click.echo(click.style(first, bold=True) if coloured else first, err=True)
    for line in others:
        click.echo(line, err=True)


def _say_evidence(result: Mapping[str, Any]) -> None:
    """Print batch time by variant and threads, then what makes the figures doubtful."""
    counts = sorted({point["threads"] for point in result["points"]})
    medians = {
        (point["variant"], point["threads"]): point["wall_s"]["median"]
        for point in result["points"]
    }
    width = max(map(len, ("threads", *result["variants"])))
    click.echo(f"\n{'threads':<{width}}{''.join(f'{count:>9}' for count in counts)}", err=True)
    for variant in result["variants"]:
        cells = (medians.get((variant, count)) for count in counts)
        row = "".join(f"{'-':>9}" if cell is None else f"{cell:>7.3g} s" for cell in cells)
        click.echo(f"{variant:<{width}}{row}", err=True)
    click.echo(err=True)
    for warning in result["machine"]["warnings"]:
        click.echo(f"warning: {warning}", err=True)
    for seen in result["observed"]:
        if seen["as_expected"] is False:
            click.echo(
                f"unexpected: {seen['variant']} has the shape `{seen['shape']}`; the scenario "
                f"expects `{seen['expected_shape']}`",
                err=True,
            )
    for line in result["missing"]:
        click.echo(f"missing: {line}", err=True)


def _command_line(
    wanted: str,
    threads: str | None,
    repeats: int | None,
    settings: tuple[str, ...],
    out: Path | None,
    quick: bool,
    no_source: bool,
) -> str:
    """Return what was typed, without `--resume`."""
    words = ["contention-lab", "run", wanted]
    words += ["--threads", threads] if threads is not None else []
    words += ["--repeats", str(repeats)] if repeats is not None else []
    for setting in settings:
        words += ["--set", setting]
    words += ["--out", str(out)] if out is not None else []
    words += ["--quick"] if quick else []
    words += ["--no-source"] if no_source else []
    return shlex.join(words)
