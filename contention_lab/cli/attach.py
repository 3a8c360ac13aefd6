"""Sample a running Python program that was not started by us, and say which lock it waits for.

\b
  contention-lab attach 4711                     for 10 seconds, into attach-4711.clt
  contention-lab attach 4711 --duration 60 -o slow.clt
  contention-lab attach 4711 --native            also C functions; stops it for each sample

py-spy reads the stacks of its threads, the kernel says where each of them is asleep. The program
is not stopped and nothing is loaded into it. What comes out is a trace for `diagnose` and `report`
made of samples: shares with intervals, no counts; and who held a lock is inferred from the source
code that the other threads were in, or not said at all. To know instead of infer, start the program
under `contention-lab record`.

Looking into another process takes permission (ptrace); where it is missing, the message says which
way out applies. Ctrl-C ends the sampling early and keeps what was seen.
"""  # noqa: D301  (click reads \b)

from __future__ import annotations

from pathlib import Path

import click

from contention_lab.cli.failure import ended_by_signals, reported
from contention_lab.cli.number import Number, Whole


@click.command(name="attach", help=__doc__)
@click.argument("pid", type=Whole(1))
@click.option(
    "-d",
    "--duration",
    metavar="SECONDS",
    type=Number(0.1, 86_400, of="seconds"),
    default=10.0,
    show_default=True,
    help="How long.",
)
@click.option(
    "-r",
    "--rate",
    metavar="N",
    type=Whole(1, 1000),
    default=100,
    show_default=True,
    help="Samples of each thread a second.",
)
@click.option(
    "--native",
    is_flag=True,
    help="Also read native frames, which tell more waits apart; the program stops for each sample.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE.clt",
    type=click.Path(path_type=Path),
    help="The trace; by default attach-PID.clt.",
)
def command(pid: int, duration: float, rate: int, native: bool, output: Path | None) -> None:
    """Sample a process."""
    from contention_lab.capture import trace_file
    from contention_lab.sampling.attachment import Options, attach
    from contention_lab.sampling.refusal import AttachError

    path = output or Path(f"attach-{pid}.clt")
    with ended_by_signals() as goes_on, reported(AttachError, ValueError):
        trace_file.refuse_other_files(str(path))
        click.echo(
            f"sampling process {pid} {rate} times a second for {duration:g} s; Ctrl-C ends it",
            err=True,
        )
        options = Options(rate, duration, native)
        attach(pid, options, goes_on=goes_on, interruptible=True).write(path)
    click.echo(f"wrote {path}; next: contention-lab diagnose {trace_file.quoted(str(path))}")
