"""The subcommands as click sees them: the module of each, and the answer to a mistyped one.

What `main` does before click is loaded is in `__init__.py`.
"""

from __future__ import annotations

import importlib

import click

from contention_lab.cli import COMMANDS
from contention_lab.cli.failure import PROGRAM


class CommandRegistry(click.Group):
    """A click group whose subcommands are the modules named in `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the subcommands, in the order of the help."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a subcommand; None where there is no such."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"contention_lab.cli.{cmd_name}").command
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
def commands(ctx: click.Context) -> None:
    """Find out which lock it is, who holds it, who waits, and which fix wins."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(click.UsageError.exit_code)
