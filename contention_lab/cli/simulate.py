"""Simulate threads that think, then work under a lock, for ever: the textbook's question.

Prints throughput, response time (from asking for the lock until it is released) and how much of the
time the lock is owned, with a band from theory beside them: exact mean value analysis, and the
asymptotic bound that no lock can beat. What the lock costs comes from this host's calibration
(`contention-lab calibrate`), or is a conservative default.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.number import Number, Whole

if TYPE_CHECKING:
    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.policies import Sharing
    from contention_lab.simulate.textbook import ClosedSystem


def _kinds(_ctx: click.Context, _parameter: click.Parameter, kind: str) -> str:
    from contention_lab.simulate.policies import POLICIES
    from contention_lab.sweep.nearest import suggestion

    if kind not in POLICIES:
        raise click.BadParameter(f"no lock {kind!r}{suggestion(kind, [*POLICIES])}")
    return kind


@click.command(name="simulate", help=__doc__)
@click.option(
    "--lock",
    "kind",
    required=True,
    metavar="KIND",
    callback=_kinds,
    help="test-and-set, back-off, ticket, mcs, parking, adaptive, reader-writer, semaphore (two "
    "permits), channel, sharded, per-object or gil.",
)
@click.option("--hold-ns", required=True, type=Number(0), help="Work under the lock, ns.")
@click.option("--think-ns", required=True, type=Number(0), help="Work between two holds, ns.")
@click.option("--threads", required=True, metavar="N,N,...", help="How many threads.")
@click.option("--cores", type=Whole(1, 65536), help="Cores.  [default: of this machine]")
@click.option(
    "--calibration",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Costs, as `calibrate --output` writes them.  [default: this host's]",
)
@click.option(
    "--spread",
    type=Number(0, 1),
    default=0.1,
    show_default=True,
    help="Coefficient of variation of holds and thinks: 0 constant, 1 exponential.",
)
@click.option(
    "--shards",
    type=Whole(1, 100_000),
    default=8,
    show_default=True,
    help="Locks of `sharded`, objects of `per-object`.",
)
@click.option(
    "--first-share",
    type=Number(0, 1),
    help="Share of acquires that the most used of the shards gets.  [default: alike]",
)
@click.option(
    "--read-share",
    type=Number(0, 1),
    default=0.9,
    show_default=True,
    help="Share of holds of `reader-writer` that only read.",
)
@click.option("--seed", type=Whole(0), default=1, show_default=True, help="Of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    kind: str,
    hold_ns: float,
    think_ns: float,
    threads: str,
    cores: int | None,
    path: Path | None,
    spread: float,
    shards: int,
    first_share: float | None,
    read_share: float,
    seed: int,
    as_json: bool,
) -> None:
    """Simulate, print."""
    import json

    from contention_lab.simulate.calibration import CalibrationError, calibration_here, load
    from contention_lab.simulate.policies import POLICIES, Sharing
    from contention_lab.simulate.textbook import ClosedSystem
    from contention_lab.sweep.host import usable_cores

    counts = _counts(threads)
    with reported(CalibrationError):
        here = usable_cores()
        calibration = calibration_here(here) if path is None else load(path)
    sharing = Sharing(shards, first_share, read_share)
    policy = POLICIES[kind]
    try:
        system = ClosedSystem(
            policy,
            calibration.costs_of(policy),
            calibration.machine_with(cores or here),
            hold_ns,
            think_ns,
            spread,
            spread,
            sharing,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    rows = [_row(system, count, seed) for count in counts]
    if as_json:
        found = {"schema": 1, **_facts(system, calibration, sharing), "points": rows}
        click.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    _print(system, calibration, rows)


def _counts(text: str) -> list[int]:
    try:
        counts = [int(item) for item in text.split(",")]
    except ValueError:
        counts = []
    if not counts or not all(0 < count <= 4096 for count in counts):
        raise click.UsageError(f"--threads {text!r}: give thread counts up to 4096, as 1,2,4")
    return counts


def _row(system: ClosedSystem, threads: int, seed: int) -> dict[str, Any]:
    from contention_lab.simulate.band import band

    found = system.simulated(threads, seed=seed)
    return {
        "threads": threads,
        "throughput_per_s": found.throughput_per_s,
        "response_ns": found.response_ns,
        "response_p50_ns": found.response_quantile_ns(0.5),
        "response_p99_ns": found.response_quantile_ns(0.99),
        "utilisation": float(found.locks["busy_ns"].max()) / max(found.measured_ns, 1.0),
        "contended_share": float(found.locks["contended"].sum())
        / max(int(found.locks["acquires"].sum()), 1),
        "spin_share": float(found.threads["spin_ns"].sum())
        / max(found.measured_ns * min(threads, system.machine.cores), 1.0),
        "preemptions_per_s": found.preemptions / max(found.measured_ns, 1.0) * 1e9,
        "band": band(system, threads).to_json(),
    }


def _facts(system: ClosedSystem, calibration: Calibration, sharing: Sharing) -> dict[str, Any]:
    return {
        "lock": system.policy.kind,
        "hold_ns": system.hold_ns,
        "think_ns": system.think_ns,
        "spread": system.hold_spread,
        "cores": system.machine.cores,
        "shards": sharing.shards,
        "read_share": sharing.read_share,
        "costs": system.costs.to_json(),
        "calibration": {
            "measured_at": calibration.measured_at or None,
            "host": dict(calibration.host),
            "warnings": [*calibration.warnings],
        },
    }


def _print(system: ClosedSystem, calibration: Calibration, rows: list[dict[str, Any]]) -> None:
    best = max(rows, key=lambda row: row["throughput_per_s"])
    last = rows[-1]
    knee = last["band"]["knee_threads"]
    click.echo(
        f"{system.policy.kind}: at most {_rate(best['throughput_per_s'])} at {best['threads']} "
        f"threads on {system.machine.cores} cores"
        + (f"; the lock limits from {knee:.1f} threads on" if knee else ""),
        err=True,
    )
    click.echo(f"  {system.policy.about}", err=True)
    click.echo(
        "  costs: a conservative default, nobody measured this host"
        if calibration.is_default
        else f"  costs: measured {calibration.measured_at} on {calibration.host.get('name')}",
        err=True,
    )
    click.echo(
        f"{'threads':>7} {'throughput':>11} {'band':>23} {'limited by':>10} "
        f"{'response':>9} {'p99':>9} {'lock used':>9} {'spinning':>8}"
    )
    for row in rows:
        theory = row["band"]
        span = f"{_rate(theory['mean_value_analysis_per_s'])} to {_rate(theory['bound_per_s'])}"
        click.echo(
            f"{row['threads']:>7} {_rate(row['throughput_per_s']):>11} {span:>23} "
            f"{theory['limited_by']:>10} {_time(row['response_ns']):>9} "
            f"{_time(row['response_p99_ns']):>9} {row['utilisation']:>9.0%} "
            f"{row['spin_share']:>8.0%}"
        )
    if calibration.is_default:
        click.echo("next: contention-lab calibrate", err=True)


def _rate(per_s: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if per_s >= size:
            return f"{per_s / size:.3g} {unit}/s"
    return f"{per_s:.3g} /s"


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
