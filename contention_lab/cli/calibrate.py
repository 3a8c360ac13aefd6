"""Measure what locks and the scheduler cost on this host, for `simulate` and `predict`.

Measures the hand-off of each kind of lock by number of waiters, the latency of wake-ups on the same
and on another core, a cache line's way between cores, the switch to another thread and the time
slice, in a few seconds. The result is kept for this host in the user's cache folder, and used from
then on. Refuses on a busy machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from contention_lab.cli.failure import reported, warn

if TYPE_CHECKING:
    from contention_lab.simulate.calibration import Calibration


@click.command(name="calibrate", help=__doc__)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to keep the result.  [default: the user's cache folder]",
)
@click.option("--anyway", is_flag=True, help="Measure on a busy machine too; say so in the result.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(path: Path | None, anyway: bool, as_json: bool) -> None:
    """Look for load, measure, keep, print."""
    import json

    from contention_lab.simulate.calibration import CalibrationError, default_path, save
    from contention_lab.simulate.host_probe import measured_calibration
    from contention_lab.sweep.host import usable_cpus
    from contention_lab.sweep.machine_load import load_warnings, observed_load

    doubts = load_warnings(observed_load())
    if doubts and not anyway:
        raise click.ClickException(
            f"{'; '.join(doubts)}: figures measured now would be wrong; wait, or --anyway"
        )
    warn(doubts)
    target = default_path() if path is None else path
    with reported(CalibrationError):
        calibration = measured_calibration(
            usable_cpus(),
            progress=lambda what: click.echo(f"measuring: {what}", err=True),
            warnings=doubts,
        )
        save(calibration, target)
    if as_json:
        click.echo(json.dumps(calibration.to_json(), indent=2, allow_nan=False))
    else:
        _print(calibration)
    click.echo(f"kept in {target}", err=True)
    where = "" if path is None else f" --calibration {target}"
    click.echo(
        f"next: contention-lab simulate --lock parking --hold-ns 1000 --think-ns 5000 "
        f"--threads 1,2,4,8{where}",
        err=True,
    )


def _print(calibration: Calibration) -> None:
    machine = calibration.machine
    rows = [
        ("host", f"{calibration.host['name']}: {calibration.host['processor']}"),
        ("cores", f"{machine.cores}"),
        ("cache line to another core", f"{calibration.transfer_ns:.0f} ns"),
        ("wake-up, same core", f"{machine.wake_same_ns / 1e3:.1f} µs"),
        ("wake-up, other core", f"{machine.wake_other_ns / 1e3:.1f} µs"),
        ("switch to another thread", f"{machine.switch_ns / 1e3:.1f} µs"),
        ("time slice", f"{machine.slice_ns / 1e6:.2f} ms"),
    ]
    for name, value in rows:
        click.echo(f"{name:<27} {value}")
    click.echo(f"{'lock':<14} {'uncontended':>11}  hand-off, by spinning waiters")
    for kind, costs in calibration.costs.items():
        points = ", ".join(f"{waiters:.0f}: {ns:.0f} ns" for waiters, ns in _few(costs.handoff_ns))
        click.echo(f"{kind:<14} {costs.acquire_ns + costs.release_ns:>8.0f} ns  {points}")


def _few(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    return points if len(points) <= 6 else points[:: -(-len(points) // 6)]
