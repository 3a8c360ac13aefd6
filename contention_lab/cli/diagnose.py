"""Say what limits the program that a trace was recorded of: which lock, who holds it, who waits.

The verdict goes to stderr; `--json` prints the whole diagnosis to stdout, in a form that stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contention_lab.cli.failure import reported, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@click.command(name="diagnose", help=__doc__)
@click.argument("path", metavar="FILE.clt", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
def command(path: Path, as_json: bool) -> None:
    """Print the diagnosis."""
    from contention_lab.diagnosis import diagnose
    from contention_lab.report.visible_text import visible
    from contention_lab.trace import TraceError, load

    with reported(TraceError):
        trace = load(path)
    diagnosis = diagnose(trace).to_json()
    click.echo(visible(diagnosis["summary"]), err=True)
    warn(trace.problems)
    if as_json:
        click.echo(json.dumps(diagnosis, indent=2))
        return
    shown: Any = None
    for finding in diagnosis["findings"]:
        for line in _lines(finding, with_parties=finding["lock"] != shown):
            click.echo(visible(line))
        shown = finding["lock"]
    click.echo(f"next: contention-lab report {path}", err=True)


def _lines(finding: Mapping[str, Any], *, with_parties: bool) -> Iterator[str]:
    lock = finding["lock"]
    yield f"{finding['kind']}{': ' + lock['name'] if lock else ''}"
    for role in ("victims", "culprits") if with_parties else ():
        for party in finding[role][:3]:
            yield f"  {role[:-1]:<7}  {party['share']:>4.0%}  {_place(party['site'])}"
    for remedy in finding["remedies"]:
        yield f"  remedy   {remedy['text']}"


def _place(site: Mapping[str, Any] | None) -> str:
    if site is None:
        return "unknown"
    return f"{site['function']} ({site['file']}:{site['line']})"
