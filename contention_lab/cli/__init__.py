"""The command line: the list of subcommands, and what an exit status means.

A subcommand is a module of this package, named in `COMMANDS`, that defines `command`, a
`click.Command` whose help is the module's docstring. Modules are imported only when they are asked
for, and import NumPy, SciPy and matplotlib only inside their functions, so that `--help` and
`--version` answer at once. (Once the module `list` is imported, `list` here is that module.)
`record` is started without click: what it takes is added to the start of the recorded program.

Exit status: 0 done, 1 the tool could not do it, 2 the command was mistyped, 130 Ctrl-C. A user's
mistake is one line on stderr: what, why, what to type next. It is never a traceback.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

COMMANDS: "Final" = (
    "record",
    "attach",
    "run",
    "scale",
    "list",
    "report",
    "diagnose",
    "top",
    "explain",
    "export",
    "view",
    "import",
    "diff",
    "fit",
    "predict",
    "simulate",
    "calibrate",
    "doctor",
)

INTERRUPTED: "Final" = 130


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        What was typed after the program's name; `sys.argv[1:]` by default.

    Returns
    -------
    int
        The exit status. `record` does not return: the process becomes the program.
    """
    typed = sys.argv[1:] if arguments is None else [*arguments]
    if typed[:1] == ["record"]:
        from contention_lab.capture.launch import LaunchError, launch
        from contention_lab.capture.request import read

        request = read(typed[1:])
        if request is not None:
            try:
                launch(request, typed)
            except LaunchError as error:
                print(f"contention-lab: {error}", file=sys.stderr)
                return error.status

    import click

    from contention_lab.cli.failure import PROGRAM, complaint
    from contention_lab.cli.registry import commands

    try:
        status = commands.main(args=typed, prog_name=PROGRAM, standalone_mode=False)
    except click.Abort:
        click.echo(f"{PROGRAM}: interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        click.echo(complaint(error), err=True)
        return error.exit_code
    return status if isinstance(status, int) else 0
