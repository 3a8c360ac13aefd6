"""Explain a kind of finding: what it means, how it is decided, what to do, before and after.

Without KIND, list them all, one line each.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contention_lab.diagnosis.explanation import Explanation


def _known(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:  # pragma: no cover - called by the shell
    from contention_lab.diagnosis.explanation import kinds

    return [kind for kind in kinds() if kind.startswith(incomplete)]


@click.command(name="explain", help=__doc__)
@click.argument("kind", required=False, shell_complete=_known)
def command(kind: str | None) -> None:
    """Print one explanation, or the list."""
    from contention_lab.diagnosis.explanation import explanation, kinds
    from contention_lab.sweep.nearest import suggestion

    known = kinds()
    if kind is None:
        width = max(map(len, known))
        for name in known:
            click.echo(f"{name:<{width}}  {explanation(name).in_short}")
        return
    if kind not in known:
        raise click.UsageError(f"no kind of finding {kind!r}{suggestion(kind, known)}")
    _print(explanation(kind))


def _print(about: Explanation) -> None:
    click.echo(f"{about.kind}\n\n{about.meaning}")
    for heading, text in (
        ("What to do", about.advice),
        ("Before", indent(about.before, "    ")),
        ("After", indent(about.after, "    ")),
        ("When it is said", about.decided),
    ):
        click.echo(f"\n{heading}\n\n{text}")
