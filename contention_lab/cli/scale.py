"""Sweep any command over thread counts, and say how it scales.

{threads} in COMMAND stands for the number of threads. Every run is a fresh process; runs are made
in random order and repeated. The law, the verdict and a forecast go to a page in reports/NAME/.
Ctrl-C keeps what is finished, and `--resume` goes on from there.

\b
  contention-lab scale --threads 1,2,4,8 -- python bench.py --workers {threads}
  contention-lab scale --time-regex 'took ([0-9.]+) s' -- make -j{threads} bench
"""  # noqa: D301  (click needs the character, not its name)

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.number import Whole

if TYPE_CHECKING:
    from contention_lab.scaling.measurements import Work
    from contention_lab.sweep.command_sweep import CommandResult

INTERRUPTED: Final = 130
INCOMPLETE: Final = 1


@click.command(
    name="scale",
    help=__doc__,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.argument("words", metavar="[--] COMMAND", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--threads", default="1,2,4,8", show_default=True, metavar="N,N,...", help="Thread counts."
)
@click.option(
    "--repeats", type=Whole(1), default=3, show_default=True, metavar="N",
    help="Timed runs of every thread count.",
)  # fmt: skip
@click.option(
    "--work",
    type=click.Choice(["fixed", "per-thread"]),
    help="fixed: one amount of work over all threads, or the rate of all threads; per-thread: "
    "every thread does the same amount, or the rate of one thread. Asked for where it matters.",
)
@click.option(
    "--time-regex",
    metavar="REGEX",
    help="Read the time from the output: the last match, its first group if it has one; seconds, "
    "m:ss or h:mm:ss.  [default: the wall clock]",
)
@click.option("--rate-regex", metavar="REGEX", help="Read a rate from the output, likewise.")
@click.option(
    "--record",
    "recorded",
    is_flag=True,
    help="Also record every thread count in one more run. For commands in Python.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results.  [default: reports/NAME, after the command]",
)
@click.option("--resume", is_flag=True, help="Keep the finished runs of an interrupted sweep.")
def command(
    words: tuple[str, ...],
    threads: str,
    repeats: int,
    work: Work | None,
    time_regex: str | None,
    rate_regex: str | None,
    recorded: bool,
    out: Path | None,
    resume: bool,
) -> int:
    """Make the runs, write the results, and say what they mean."""
    from contention_lab.cli.progress import sweep_progress
    from contention_lab.scaling.errors import AmbiguousWorkError, ScalingError
    from contention_lab.sweep.adjustment import thread_counts
    from contention_lab.sweep.command import Command
    from contention_lab.sweep.command_sweep import conclude_command, sweep_command
    from contention_lab.sweep.errors import SweepError
    from contention_lab.sweep.figure import Figure

    if time_regex is not None and rate_regex is not None:
        raise click.UsageError("--time-regex and --rate-regex: give one of the two")
    figure = Figure()
    if time_regex is not None:
        figure = Figure("time", time_regex)
    elif rate_regex is not None:
        figure = Figure("rate", rate_regex)
    with reported(SweepError, ScalingError):
        swept = Command(words, thread_counts(threads), repeats, figure, recorded)
        folder = Path("reports") / swept.name if out is None else out
        with sweep_progress() as observer:
            outcome = sweep_command(swept, folder, observer, resume=resume)
        if outcome.interrupted and not outcome.results:
            click.echo("interrupted before the first run had ended; nothing was measured", err=True)
            return INTERRUPTED
        try:
            found = conclude_command(swept, outcome, folder, work=work)
        except AmbiguousWorkError as error:
            raise click.UsageError(f"{error}; with --resume the runs are not made again") from error
    _say(found)
    if not found.result["complete"]:
        click.echo(f"continue: {_again()}", err=True)
    elif recorded:
        trace = folder / found.result["points"][-1]["trace"]
        click.echo(f"next: contention-lab diagnose {shlex.quote(str(trace))}", err=True)
    else:
        click.echo(f"next: {found.conclusion.verdict.next}", err=True)
    click.echo(found.report)
    if outcome.interrupted:
        return INTERRUPTED
    return 0 if found.result["complete"] else INCOMPLETE


def _say(found: CommandResult) -> None:
    """Print the verdict, its evidence, and what makes the figures doubtful."""
    from contention_lab.report.visible_text import visible

    verdict = found.conclusion.verdict
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    click.echo(click.style(verdict.summary, bold=coloured), err=True)
    for line in verdict.lines:
        click.echo(f"  {line}", err=True)
    unit = found.conclusion.measurements.unit
    click.echo(f"\n{'threads':>8} {'median':>10} {'min':>10} {'max':>10}", err=True)
    for point in found.result["points"]:
        figures = (point["median"], min(point["values"]), max(point["values"]))
        row = "".join(f" {figure:>10.4g}" for figure in figures)
        click.echo(f"{point['threads']:>8}{row}  {unit}", err=True)
    click.echo(err=True)
    for line in found.result["machine"]["warnings"]:
        click.echo(f"warning: {line}", err=True)
    for line in found.result["missing"]:
        click.echo(f"missing: {visible(line)}", err=True)


def _again() -> str:
    """Return what was typed, with `--resume`."""
    typed = [word for word in sys.argv[1:] if word != "--resume"]
    at = typed.index("scale") + 1 if "scale" in typed else 0
    return shlex.join(["contention-lab", *typed[:at], "--resume", *typed[at:]])
