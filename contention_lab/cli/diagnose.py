"""Say what limits the program that a trace was recorded of: which lock, who holds it, who waits.

Name the traces of several processes together to see the locks that they share.

The verdict goes to stderr, the evidence to stdout; `--json` prints the whole diagnosis to stdout,
in a form that stays. Shares beside places are of all the waiting that the finding is about.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from contention_lab.cli.failure import loaded, reported, warn

SHOWN: Final = 3
"""Findings, and things not recorded, that are shown without `--all`."""


@click.command(name="diagnose", help=__doc__)
@click.argument(
    "paths", metavar="FILE.clt...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@click.option("--all", "show_all", is_flag=True, help=f"Show all findings, not the first {SHOWN}.")
def command(paths: tuple[Path, ...], as_json: bool, show_all: bool) -> None:
    """Print the diagnosis."""
    from contention_lab.cli.finding_lines import finding_lines, gil_lines
    from contention_lab.diagnosis import diagnose_together
    from contention_lab.report.visible_text import visible
    from contention_lab.trace import TraceError

    with reported(TraceError):
        traces = loaded(paths)
    diagnosis = diagnose_together(traces).to_json()
    click.echo(visible(diagnosis["summary"]), err=True)
    warn(diagnosis["problems"])
    unseen, findings = diagnosis["not_seen"], diagnosis["findings"]
    for sentence in unseen if show_all else unseen[:SHOWN]:
        click.echo(f"not recorded: {visible(sentence)}", err=True)
    for line in gil_lines(diagnosis):
        click.echo(line, err=True)
    if as_json:
        click.echo(json.dumps(diagnosis, indent=2))
        return
    for position, finding in enumerate(findings if show_all else findings[:SHOWN], 1):
        for line in finding_lines(finding, position):
            click.echo(visible(line))
    if len(findings) > SHOWN and not show_all:
        click.echo(f"{len(findings) - SHOWN} more findings: --all shows them", err=True)
    click.echo(f"next: contention-lab report {' '.join(map(str, paths))}", err=True)
