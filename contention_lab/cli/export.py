"""Write a trace in the format of another tool.

The file is written beside the trace unless `-o` says otherwise; its path is printed. `-o -` writes
to standard output. An earlier file of that name is replaced.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from contention_lab.cli.failure import reported, warn

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.export.export_format import ExportFormat
    from contention_lab.trace import Trace

_FORMATS: Final = {  # spelled out here, so that --help needs no NumPy
    "perfetto": "timeline, for Perfetto and `vizviewer`",
    "speedscope": "flame graphs, for speedscope",
    "pprof": "contentions and delay by stack, for `go tool pprof`",
    "collapsed": "stacks with nanoseconds, for inferno and flamegraph.pl",
    "firefox": "flame graph and timeline, for the Firefox profiler",
    "csv": "one line for each wait and hold",
    "parquet": "the same, for data frames; needs the extra `parquet`",
    "openmetrics": "totals of each lock, for Prometheus",
}
_VIEWS: Final = ("victim", "culprit", "spin", "hold", "gil", "gil-holder")


_HELP: Final = "\n".join(
    (f"{__doc__}", "\b", "Formats:", *(f"  {name:<12} {text}" for name, text in _FORMATS.items()))
)


@click.command(name="export", help=_HELP)
@click.argument("path", metavar="FILE.clt", type=click.Path(path_type=Path))
@click.option(
    "-f",
    "--format",
    "format_name",
    type=click.Choice([*_FORMATS]),
    required=True,
    metavar="FORMAT",
    help="One of the formats above.",
)
@click.option(
    "--view",
    type=click.Choice(_VIEWS),
    help="Which stacks, where a format has stacks of one kind: of those who wait (victim), who "
    "make them wait (culprit), who spin, who hold, who wait for the GIL (gil) or have it "
    "(gil-holder).  [default: victim; speedscope: all]",
)
@click.option("-o", "--output", metavar="FILE", help="Where to write it.")
def command(path: Path, format_name: str, view: View | None, output: str | None) -> None:
    """Write the file."""
    from contention_lab.export.export_format import ExportError
    from contention_lab.export.registry import FORMATS
    from contention_lab.trace import TraceError, load

    chosen = FORMATS[format_name]
    if view is not None and not chosen.by_view:
        raise click.UsageError(f"--view: format {format_name} holds everything; leave it out")
    with reported(TraceError, ExportError):
        trace = load(path)
        if output == "-":
            chosen.write(trace, sys.stdout.buffer, view)
            sys.stdout.buffer.flush()
        else:
            target = Path(output) if output else path.with_suffix(chosen.suffix)
            if target.exists() and target.samefile(path):
                raise click.UsageError(f"{target} is the trace itself; name another file with -o")
            _write(trace, chosen, view, target)
            click.echo(target)
    warn(trace.problems)
    click.echo(f"open it with {chosen.opens_with}", err=True)


def _write(trace: Trace, chosen: ExportFormat, view: View | None, target: Path) -> None:
    """Write a file under another name first, so that a failure leaves the earlier one."""
    partial = target.with_name(target.name + ".partial")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    try:
        with partial.open("wb") as sink:
            chosen.write(trace, sink, view)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
