"""Make a trace of what another profiler has sampled, of a program in any language.

\b
  perf record -F 500 -g ./program; perf script > out.perf
  contention-lab import out.perf                 into out.clt
  contention-lab import stacks.folded            collapsed stacks (`main;work;spin_lock 12`)
  perf script | contention-lab import - -o run.clt

What threads were doing is told by the names in their stacks: spinning for a lock, waiting, working.
So the trace, for `diagnose` and `report`, is one of samples: shares with intervals, no counts, and
who had a lock is inferred. Stacks must be whole: `perf record --call-graph dwarf`, or a program
built with -fno-omit-frame-pointer. `perf script -F +pid` tells processes apart.
"""  # noqa: D301, N999  (click reads \b)

from __future__ import annotations

import sys
from pathlib import Path

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.number import Number
from contention_lab.importing.stack_file import FORMATS


@click.command(name="import", help=__doc__)
@click.argument("path", metavar="FILE|-")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="What the file is.  [default: what it looks like]",
)
@click.option("--event", metavar="NAME", help="Of several events, the one whose samples to use.")
@click.option("--process", metavar="PID|NAME", help="Of several processes, the one to look at.")
@click.option(
    "--rate",
    metavar="N",
    type=Number(0.001, 1_000_000_000),
    help="Samples a second, where the file does not say.  [default: 100]",
)
@click.option("-o", "--output", metavar="FILE.clt", type=click.Path(path_type=Path))
def command(
    path: str,
    form: str | None,
    event: str | None,
    process: str | None,
    rate: float | None,
    output: Path | None,
) -> None:
    """Write the trace."""
    from contention_lab.capture import trace_file
    from contention_lab.importing.imported_trace import imported_trace, read
    from contention_lab.importing.stack_file import StackFileError

    if path == "-" and output is None:
        raise click.UsageError("what comes from the standard input has no name: give -o FILE.clt")
    target = output or Path(path).with_suffix(".clt")
    with reported(StackFileError):
        trace_file.refuse_other_files(str(target))
        name = "standard input" if path == "-" else path
        lines = _lines(path)
        file = read(lines, name, form)
        builder = imported_trace(file, name, event=event, process=process, rate=rate)
        builder.write(target)
    quoted = trace_file.quoted(str(target))
    click.echo(f"{len(file.samples):,} {file.source} samples", err=True)
    click.echo(f"wrote {target}; next: contention-lab diagnose {quoted}")


def _lines(path: str) -> list[str]:
    if path == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    return Path(path).read_bytes().decode("utf-8", "replace").splitlines()
