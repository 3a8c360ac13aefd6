"""Predict how a recorded program would do: with more threads, other cores, a fix, no GIL.

The work comes from the trace: what each thread did, for how long, under which locks. It is
simulated with the recorded locks, and with each remedy for the worst of them. The recorded run is
predicted first, and how far that is off widens all intervals.

\b
Remedies, as `--fix` takes them (may be repeated; without it all that apply):
  narrow=SITE[:SHARE]   take the code at SITE out of the lock (all of it, or SHARE)
  move-out=SITE         do the input, output or sleep at SITE without the lock
  shard=N|per-object    N locks in place of one, or one for each object
  faster=SITE:PCT       the code at SITE takes PCT percent less time under the lock
  remove                do without the lock
  async-backend         queue the native work done under it
  permits=N             a semaphore with N permits
  lock=KIND             test-and-set, back-off, ticket, mcs, parking or adaptive;
                        rwlock: only what it can bring at best
  merge-calls=N         take the lock once for N calls
  channel               let a server thread do the work
SITE is a function that takes the lock (`Server.backward`), or its place (`server.py:40`).
"""  # noqa: D301  (click needs the character, not its name)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from contention_lab.cli.failure import reported, warn
from contention_lab.cli.number import Whole

if TYPE_CHECKING:
    from contention_lab.simulate.calibration import Calibration
    from contention_lab.trace import Trace

MOST_THREADS = 4096


@click.command(name="predict", help=__doc__)
@click.argument("path", metavar="FILE.clt", type=click.Path(path_type=Path))
@click.option("--threads", metavar="N,N,...", help="Thread counts.  [default: around the recorded]")
@click.option("--cores", type=Whole(1, 65536), help="Cores.  [default: as recorded]")
@click.option("--no-gil", is_flag=True, help="As on free-threaded Python: what takes over?")
@click.option("--fix", "fixes", multiple=True, metavar="REMEDY", help="A remedy, as above.")
@click.option("--lock", metavar="NAME", help="The lock to treat.  [default: the worst]")
@click.option(
    "--calibration",
    "costs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Costs, as `calibrate --output` writes them.  [default: this host's]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.svg|png",
    help="Draw the curves.",
)
def command(
    path: Path,
    threads: str | None,
    cores: int | None,
    no_gil: bool,
    fixes: tuple[str, ...],
    lock: str | None,
    costs: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Predict, print, draw."""
    import json

    from contention_lab.cli.prediction_lines import (
        curve_lines,
        recorded_lines,
        remedy_lines,
        summary,
    )
    from contention_lab.cli.prediction_lines import (
        no_gil as without_gil,
    )
    from contention_lab.report.visible_text import visible
    from contention_lab.simulate.batch.run import StuckError
    from contention_lab.simulate.calibration import CalibrationError, calibration_here, load
    from contention_lab.simulate.prediction.as_json import prediction_json
    from contention_lab.simulate.prediction.predict import Asked, PredictionError, predict
    from contention_lab.simulate.remedies import RemedyError
    from contention_lab.sweep.host import usable_cores
    from contention_lab.trace import TraceError
    from contention_lab.trace import load as load_trace

    counts = _counts(threads) if threads else ()
    if output is not None and output.suffix not in (".svg", ".png"):
        raise click.UsageError(f"-o {output}: give a name that ends in .svg or .png")
    with reported(TraceError, CalibrationError, PredictionError, RemedyError, StuckError):
        trace = _recorded_in_full(load_trace(path))
        calibration = calibration_here(usable_cores()) if costs is None else load(costs)
        prediction = predict(
            trace,
            _locks(trace, lock),
            calibration,
            recorded_cores=trace.cores or calibration.machine.cores,
            asked=Asked(counts, cores, not no_gil, fixes),
        )
        found = prediction_json(prediction, calibration)
        if output is not None:
            from contention_lab.report.prediction_plot import draw

            draw(found, output)
    click.echo(visible(summary(found)), err=True)
    if no_gil:
        for line in without_gil(found):
            click.echo(f"  {visible(line)}", err=True)
    for line in recorded_lines(found):
        click.echo(f"  {visible(line)}", err=True)
    click.echo(f"  {_costs_line(calibration)}", err=True)
    warn([*trace.problems, *found["notes"], *found["left_out"]])
    if as_json:
        click.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    for line in (*curve_lines(found), "", *remedy_lines(found)):
        click.echo(visible(line))
    if output is not None:
        click.echo(f"wrote {output}", err=True)
    elif calibration.is_default:
        click.echo("next: contention-lab calibrate", err=True)


def _counts(text: str) -> tuple[int, ...]:
    try:
        counts = sorted({int(item) for item in text.split(",")})
    except ValueError:
        counts = []
    if not counts or not all(0 < count <= MOST_THREADS for count in counts):
        raise click.UsageError(
            f"--threads {text!r}: give thread counts up to {MOST_THREADS}, as 1,2,4"
        )
    return tuple(counts)


def _recorded_in_full(trace: Trace) -> Trace:
    """Return a trace with its locks as what they are, if it says what threads did with them."""
    from contention_lab.analysis.hand_overs import with_signals
    from contention_lab.trace import Level, TraceError

    if trace.level == Level.COUNTERS:
        raise TraceError(
            f"{trace.path}: recorded at level counters, which keeps no holds; record it again "
            "without --level"
        )
    return with_signals(trace)


def _locks(trace: Trace, name: str | None) -> tuple[int, ...]:
    from contention_lab.diagnosis import diagnose
    from contention_lab.diagnosis.worst_lock import worst_lock

    if name is None:
        return worst_lock(trace, diagnose(trace))
    found = [lock for lock in trace.locks.values() if lock.label == name]
    if not found:
        from contention_lab.sweep.nearest import suggestion

        known = [*dict.fromkeys(lock.label for lock in trace.locks.values())]
        raise click.UsageError(f"--lock {name!r}: no such lock{suggestion(name, known)}")
    return tuple(lock.id for lock in found)


def _costs_line(calibration: Calibration) -> str:
    if calibration.is_default:
        return "costs of locks: a conservative default, nobody measured this host"
    return f"costs of locks: measured {calibration.measured_at} on {calibration.host.get('name')}"
