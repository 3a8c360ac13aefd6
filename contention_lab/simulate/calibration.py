"""What a host's locks and scheduler cost: measured once, kept as JSON, used by every simulation.

Without a measurement there is a conservative default: costs rather too high than too low, so that a
prediction made with it promises too little. It measures nothing (`host_probe.py`).
"""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.simulate.policies import Policy

SCHEMA: Final = 1
SLICES_APART: Final = 1.2
"""A measured slice that is this many times as long as Linux' own ended at a tick."""
_MACHINE_TIMES: Final = (
    "slice_ns",
    "tick_ns",
    "switch_ns",
    "wake_same_ns",
    "wake_other_ns",
)


class CalibrationError(Exception):
    """A calibration that cannot be read: one line, what and why."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Costs on one host.

    Attributes
    ----------
    host
        Facts about it: "name", "processor", "cores", "system".
    machine
        Its scheduler; `machine.cores` are those that could be used when it was measured.
    transfer_ns
        Time a cache line takes from one core to another, in ns.
    costs
        Costs of locks, by kind.
    measured_at
        ISO time of the measurement; "" for the default.
    warnings
        What made the measurement doubtful.
    points
        The measurements behind the costs: kind, hold_ns, think_ns, threads, ns_per_operation.
    """

    host: Mapping[str, Any]
    machine: Machine
    transfer_ns: float
    costs: Mapping[str, LockCosts]
    measured_at: str = ""
    warnings: tuple[str, ...] = ()
    points: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def is_default(self) -> bool:
        """Nobody measured this host."""
        return not self.measured_at

    def costs_of(self, policy: Policy) -> LockCosts:
        """Return what a kind of lock costs; its default where nobody measured it."""
        return self.costs.get(policy.cost_kind, policy.defaults)

    def machine_with(self, cores: int) -> Machine:
        """Return the host's machine with another number of cores.

        A slice that was measured as the time between two preemptions is that of a tick where ticks
        are longer than what the scheduler promises: a woken thread need not wait for the tick.
        """
        machine = self.machine
        promised_ns = slice_of_linux_ns(machine.cores)
        if not machine.tick_ns and machine.slice_ns > SLICES_APART * promised_ns:
            machine = replace(machine, slice_ns=promised_ns, tick_ns=machine.slice_ns)
        return replace(machine, cores=cores)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "schema": SCHEMA,
            "host": dict(self.host),
            "measured_at": self.measured_at,
            "warnings": [*self.warnings],
            "machine": {
                "cores": self.machine.cores,
                **{name: getattr(self.machine, name) for name in _MACHINE_TIMES},
            },
            "transfer_ns": self.transfer_ns,
            "locks": {kind: costs.to_json() for kind, costs in self.costs.items()},
            "points": [dict(point) for point in self.points],
        }

    @classmethod
    def from_json(cls, found: Any) -> Calibration:
        """Return a calibration written by `to_json`.

        Raises
        ------
        CalibrationError
            If it is none.
        """
        try:
            if found["schema"] != SCHEMA:
                raise CalibrationError(f"schema {found['schema']!r}: this version knows {SCHEMA}")
            machine = found["machine"]
            return cls(
                host=dict(found["host"]),
                machine=Machine(
                    cores=int(machine["cores"]),
                    **{name: float(machine[name]) for name in _MACHINE_TIMES},
                ),
                transfer_ns=float(found["transfer_ns"]),
                costs={
                    str(kind): LockCosts.from_json(costs) for kind, costs in found["locks"].items()
                },
                measured_at=str(found["measured_at"]),
                warnings=tuple(map(str, found["warnings"])),
                points=tuple(map(dict, found["points"])),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CalibrationError(f"no calibration ({type(error).__name__}: {error})") from error


def default_calibration(cores: int) -> Calibration:
    """Return the conservative costs of a host that nobody measured.

    Parameters
    ----------
    cores
        Cores that threads can use.
    """
    return Calibration(
        host=host_facts(cores),
        machine=Machine(cores, slice_ns=slice_of_linux_ns(cores), tick_ns=4e6),
        transfer_ns=LockCosts().transfer_ns,
        costs={kind: policy.defaults for kind, policy in POLICIES.items() if not policy.priced_as},
    )


def slice_of_linux_ns(cores: int) -> float:
    """Return the time slice of Linux' scheduler, in ns.

    A base of 0.75 ms, times 1 + log2 of the cores, of which at most eight count (`tunable_scaling`
    in kernel/sched/fair.c).
    """
    return 0.75e6 * min(cores, 8).bit_length()


def host_facts(cores: int) -> dict[str, Any]:
    """Return what tells this host from others."""
    return {
        "name": platform.node(),
        "processor": _processor(),
        "cores": cores,
        "system": f"{platform.system()} {platform.release()}",
    }


def default_path() -> Path:
    """Return where this host's calibration is kept: the user's cache folder, a file per host."""
    folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    name = re.sub(r"[^A-Za-z0-9._-]", "_", platform.node()) or "host"
    return Path(folder) / "contention-lab" / f"calibration-{name}.json"


def save(calibration: Calibration, path: Path) -> None:
    """Write a calibration; whoever reads meanwhile finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_text(json.dumps(calibration.to_json(), indent=2) + "\n", encoding="utf-8")
    beside.replace(path)


def load(path: Path) -> Calibration:
    """Read a calibration.

    Raises
    ------
    CalibrationError
        If the file holds none.
    OSError
        If there is no such file.
    """
    try:
        return Calibration.from_json(json.loads(path.read_text(encoding="utf-8")))
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from error
    except ValueError as error:
        raise CalibrationError(f"{path}: not JSON: {error}") from error


def calibration_here(cores: int) -> Calibration:
    """Return this host's calibration if it was measured on this hardware, else the default.

    Parameters
    ----------
    cores
        Cores that can be used now.
    """
    path = default_path()
    try:
        found = load(path)
    except (OSError, CalibrationError):
        return default_calibration(cores)
    here = host_facts(cores)
    if any(found.host.get(fact) != here[fact] for fact in ("name", "processor")):
        return default_calibration(cores)
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def as_point(
    kind: str, hold_ns: float, think_ns: float, threads: int, ns_per_operation: float
) -> dict[str, Any]:
    """Return one measurement as a calibration keeps it."""
    return {
        "kind": kind,
        "hold_ns": hold_ns,
        "think_ns": think_ns,
        "threads": threads,
        "ns_per_operation": ns_per_operation,
    }
