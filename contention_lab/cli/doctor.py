"""Say what this machine allows: cores, clock, GIL, ptrace, BLAS, load, compiler, versions.

Plain text by default; `--json` prints the same facts as one JSON object.
"""

from __future__ import annotations

import json
from typing import Any

import click


@click.command(name="doctor", help=__doc__)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(as_json: bool) -> None:
    """Print the facts."""
    facts = machine_report()
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    rows = list(_rows(facts))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"{name:<{width}}  {value}")


def machine_report() -> dict[str, Any]:
    """Return everything `doctor` knows, by topic; takes half a second to watch the load."""
    import sys
    from dataclasses import asdict

    from contention_lab.sweep import capability, host, machine_load, versions

    load = machine_load.observed_load()
    return {
        "package": versions.package_version(),
        "machine": {
            **host.machine_facts(),
            "blas": host.blas_libraries(),
            "cpu_quota": capability.cpu_quota(),
        },
        "python": {
            **host.python_facts(),
            "free_threaded_build": host.free_threaded_build(),
            "executable": sys.executable,
            "switch_interval_s": sys.getswitchinterval(),
        },
        "native_core": asdict(capability.native_core()),
        "invariant_tsc": asdict(capability.invariant_tsc()),
        "ptrace": asdict(capability.ptrace()),
        "compiler": asdict(capability.compiler()),
        "load": load.to_json(),
        "warnings": machine_load.load_warnings(load),
        "versions": {name: versions.installed_version(name) for name in versions.REQUIREMENTS},
    }


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    machine, python, load = facts["machine"], facts["python"], facts["load"]
    quota = machine["cpu_quota"]
    pressure = load["cpu_some_avg10"]
    return [
        ("contention-lab", facts["package"]),
        ("native core", _capability("loaded", "not loaded", facts["native_core"])),
        ("python", f"{python['implementation']} {python['version']} ({python['executable']})"),
        ("GIL", _gil(python)),
        ("system", f"{machine['system']} {machine['release']}"),
        ("processor", machine["processor"]),
        (
            "cores",
            f"{machine['cores']} usable of {machine['cores_online']} online"
            + (f", {quota:g} granted by the control group" if quota is not None else ""),
        ),
        ("clock source", machine["clock"] or "unknown"),
        ("invariant TSC", _capability("yes", "no", facts["invariant_tsc"])),
        ("ptrace", _capability("permitted", "not permitted", facts["ptrace"])),
        ("compiler", _capability("found", "missing", facts["compiler"])),
        *(("BLAS", _pool(pool)) for pool in machine["blas"]),
        (
            "load",
            f"{load['load1']:.2f} over one minute; others use {load['others_share']:.0%} of all "
            f"CPUs, {load['steal_share']:.0%} stolen"
            + (f"; pressure {pressure:.1f} %" if pressure is not None else ""),
        ),
        *(("warning", line) for line in facts["warnings"]),
        *((name, version or "not installed") for name, version in facts["versions"].items()),
    ]


def _capability(yes: str, no: str, capability: dict[str, Any]) -> str:
    return f"{yes if capability['available'] else no}: {capability['detail']}"


def _gil(python: dict[str, Any]) -> str:
    build = "free-threaded build" if python["free_threaded_build"] else "build with GIL"
    interval_ms = python["switch_interval_s"] * 1e3
    return f"{'on' if python['gil'] else 'off'} ({build}), switch interval {interval_ms:g} ms"


def _pool(pool: dict[str, Any]) -> str:
    threads = "thread" if pool["threads"] == 1 else "threads"
    return (
        f"{pool['library']} {pool['version']} {pool['architecture']}, {pool['threads']} {threads}"
    )
