"""The command line: the registry of subcommands, and what an exit status means.

A subcommand is a module of this package, named in `COMMANDS`, that defines `command`, a
`click.Command` whose help is the module's docstring. Modules are imported only when they are asked
for, and import NumPy, SciPy and matplotlib only inside their functions, so that `--help` and
`--version` answer at once. (Once the module `list` is imported, `list` here is that module.)

Exit status: 0 done, 1 the tool could not do it, 2 the command was mistyped, 130 Ctrl-C. A user's
mistake is one line on stderr: what, why, what to type next. It is never a traceback.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

import click

from contention_lab.cli.failure import PROGRAM, complaint

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = ("run", "list", "report", "diagnose", "top", "doctor")

INTERRUPTED: Final = 130


class CommandRegistry(click.Group):
    """A click group whose subcommands are the modules named in `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the subcommands, in the order of the help."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a subcommand; None where there is no such."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"{__name__}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Split off the subcommand's name; a mistyped one is answered with the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from contention_lab.sweep.nearest import suggestion

            raise click.UsageError(f"no command {args[0]!r}{suggestion(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from contention_lab.sweep.versions import package_version

        click.echo(f"{PROGRAM} {package_version()}")
        ctx.exit()


@click.group(
    cls=CommandRegistry,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.pass_context
def _commands(ctx: click.Context) -> None:
    """Find out which lock it is, who holds it, who waits, and which fix wins."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(click.UsageError.exit_code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        What was typed after the program's name; `sys.argv[1:]` by default.

    Returns
    -------
    int
        The exit status.
    """
    try:
        status = _commands.main(
            args=None if arguments is None else [*arguments],
            prog_name=PROGRAM,
            standalone_mode=False,
        )
    except click.Abort:
        click.echo(f"{PROGRAM}: interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        click.echo(complaint(error), err=True)
        return error.exit_code
    return status if isinstance(status, int) else 0
