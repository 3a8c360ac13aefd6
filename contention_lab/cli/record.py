"""Run a Python program unmodified and record what its locks do.

\b
  contention-lab record train.py --epochs 3      into train.clt
  contention-lab record -o run.clt -m package.module
  contention-lab record -c 'import service; service.main()'

The program runs as `python` would run it: same arguments, output, exceptions and exit status. At
the end one line on stderr says where the trace is. It is written to PROGRAM.clt in the current
folder unless -o names another file; an earlier trace is replaced, a file that is not a trace never.
The trace of a program that was killed can be read up to the last tenth of a second.

With --subprocesses, child processes that are Python of the same environment (subprocess,
multiprocessing, os.fork) are recorded too, each into a file beside the trace: run.clt,
run.4711.clt, run.4712.clt; those of an earlier run are removed, and a child that used no lock
leaves none. Every child process then finds some variables more in its environment, which a Python
takes out again before its program starts. Not recorded are a Python started with -I, -E or -S, one
that finds no recorder built for it (the last line counts both), and programs that are no Python.

On Linux a shared object is preloaded that stands before the C library's blocking calls. It sees
every wait for the GIL, and the calls in which the holder of a lock is blocked. The program finds
its own LD_PRELOAD in the environment, and other programs that it starts are left alone.

A path to an executable that is no script is run as it is, and its locks of the C library are
recorded: `contention-lab record -- ./program`.

A program that hangs: with --watch SECONDS, and at any time on SIGUSR1 (kill -USR1 PID), it prints
to stderr which threads hold which locks and which wait where, with stacks, and who waits for whom
in a ring; the trace is then complete up to that moment. Of event loops: callbacks that have not
returned for that long, and tasks that stand still. A thread of native code does it, so it
works while every Python thread is stuck. Where the program handles or ignores SIGUSR1 itself, it
still does; a SIGUSR1 that it sends to itself, or that a child gets, does what it does without us.
"""  # noqa: D301  (click reads \b)

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from contention_lab.capture.launch import LaunchError, launch
from contention_lab.capture.request import (
    FUNCTION_ENTRIES,
    FUNCTION_ENTRIES_RANGE,
    LEVELS,
    Request,
    is_program,
    split,
)
from contention_lab.cli.failure import PROGRAM
from contention_lab.cli.number import Number, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProgramCommand(click.Command):
    """A command whose options end where a program's command line begins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the program away from click."""
        options, program = split(args)
        ctx.obj = program
        return super().parse_args(ctx, options)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return what follows the command's name in the line on usage."""
        return ["[OPTIONS]", "SCRIPT.py|-m MODULE|-c CODE", "[ARGUMENTS]..."]


@click.command(name="record", cls=ProgramCommand, help=__doc__)
@click.option("-o", "--output", metavar="FILE.clt", help="The trace; by default PROGRAM.clt.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="profile",
    show_default=True,
    help="counters: exact counts and sums per lock. profile: also every contended wait and every "
    "hold that blocked somebody, with stacks. trace: also every other hold.",
)
@click.option(
    "--existing",
    is_flag=True,
    help="Also record locks made before recording began (by .pth files, sitecustomize).",
)
@click.option("--subprocesses", is_flag=True, help="Also record child processes.")
@click.option(
    "-q", "--quiet", is_flag=True, help="Print nothing at the end, unless the trace failed."
)
@click.option(
    "--no-native-layer",
    is_flag=True,
    help="Preload nothing: waits for the GIL are only sampled, and calls that block under a lock "
    "are not seen.",
)
@click.option(
    "--watch",
    metavar="SECONDS",
    type=Number(0.1, 1_000_000, of="seconds"),
    help="If no thread that holds or waits for a lock has moved for that long, or some wait for "
    "each other, print who holds what and who waits where, write the trace, and go on.",
)
@click.option("--abort", is_flag=True, help="With --watch: abort the program then.")
@click.option(
    "--functions",
    is_flag=True,
    help="Also record which functions run when, by viztracer, into one timeline with waits and "
    "holds: PROGRAM.functions.json. The program runs several times as long as without.",
)
@click.option(
    "--function-entries",
    metavar="N",
    type=Whole(*FUNCTION_ENTRIES_RANGE),
    help=f"With --functions: keep the last N calls.  [default: {FUNCTION_ENTRIES:,}]",
)
@click.option(
    "--live",
    is_flag=True,
    help="Show the locks while the program runs, anew each second: a table if the program's own "
    "output goes elsewhere than this terminal, else a line about the worst one.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Also sample the program as `attach` does, into PROGRAM.samples.clt, and say at the end "
    "where samples and events disagree.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m`.")
@click.option("-c", "code", metavar="CODE", help="Run code, as `python -c`.")
@click.pass_context
def command(
    ctx: click.Context,
    output: str | None,
    level: str,
    existing: bool,
    subprocesses: bool,
    quiet: bool,
    watch: float | None,
    abort: bool,
    no_native_layer: bool,
    functions: bool,
    function_entries: int | None,
    live: bool,
    sample: bool,
    module: str | None,
    code: str | None,
) -> None:
    """Become the program."""
    assert module is None and code is None  # noqa: PT018  (`split` has taken them)
    program: Sequence[str] = ctx.obj
    if abort and watch is None:
        raise click.UsageError("--abort goes with --watch SECONDS", ctx)
    if function_entries is not None and not functions:
        raise click.UsageError("--function-entries goes with --functions", ctx)
    if not is_program(program):
        raise click.UsageError("there is no program to record: give a script, -m or -c", ctx)
    request = Request(
        program,
        output,
        level,
        existing=existing,
        subprocesses=subprocesses,
        quiet=quiet,
        native_layer=not no_native_layer,
        watch=watch or 0.0,
        aborts=abort,
        functions=(function_entries or FUNCTION_ENTRIES) if functions else 0,
        live=live,
        sample=sample,
    )
    try:
        launch(request, sys.argv[1:])
    except LaunchError as error:
        click.echo(f"{PROGRAM}: {error}", err=True)
        ctx.exit(error.status)
