"""List the scenarios that ship with contention-lab, one line each.

Run one with `contention-lab run NAME`.
"""

from __future__ import annotations

import click

from contention_lab.cli.failure import reported


@click.command(name="list", help=__doc__)
def command() -> None:
    """Print name and title of every scenario."""
    from contention_lab.sweep.catalogue import find_scenario, shipped_names
    from contention_lab.sweep.errors import SweepError

    with reported(SweepError):
        scenarios = [find_scenario(name) for name in shipped_names()]
    width = max((len(scenario.name) for scenario in scenarios), default=0)
    for scenario in scenarios:
        click.echo(f"{scenario.name:<{width}}  {scenario.title}")
