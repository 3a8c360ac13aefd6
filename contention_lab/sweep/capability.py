"""What the machine allows a lock profiler to do: clock, ptrace, compiler, native core.

It asks and changes nothing. Each answer is a value and a short reason, for people who wonder why a
feature is off.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contention_lab.sweep.host import clock_source, processor_flags

_PROC: Final = Path("/proc")
_CAP_SYS_PTRACE: Final = 19
_YAMA_MEANING: Final = {
    0: "any process of the same user",
    1: "only its own children",
    2: "only with CAP_SYS_PTRACE",
    3: "nobody",
}


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether something is possible here, and why (not)."""

    available: bool
    detail: str


def invariant_tsc() -> Capability:
    """Tell whether the time-stamp counter runs at one rate and the kernel trusts it."""
    source = clock_source()
    missing = sorted({"constant_tsc", "nonstop_tsc"} - processor_flags())
    if missing:
        return Capability(False, f"the processor does not list {' and '.join(missing)}")
    if source != "tsc":
        return Capability(False, f"the kernel's clock source is {source or 'unknown'}, not tsc")
    return Capability(True, "constant_tsc, nonstop_tsc, trusted by the kernel")


def ptrace(proc: Path = _PROC) -> Capability:
    """Tell whether this process may attach to another one of the same user."""
    capable = _has_capability(_CAP_SYS_PTRACE, proc)
    try:
        scope = int((proc / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return Capability(True, f"no yama; CAP_SYS_PTRACE {'held' if capable else 'not held'}")
    allowed = scope == 0 or (capable and scope < 3)
    reason = f"yama ptrace_scope {scope} ({_YAMA_MEANING.get(scope, 'unknown')})"
    return Capability(allowed, f"{reason}; CAP_SYS_PTRACE {'held' if capable else 'not held'}")


def _has_capability(bit: int, proc: Path) -> bool:
    try:
        lines = (proc / "self/status").read_text().splitlines()
        effective = next(line for line in lines if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return os.geteuid() == 0
    return bool(int(effective.split()[1], 16) >> bit & 1)


def compiler() -> Capability:
    """Tell whether the C compiler that Python was built with, or another, is here."""
    wanted = (sysconfig.get_config_var("CC") or "cc").split()[0]
    for name in dict.fromkeys((os.environ.get("CC") or wanted, wanted, "cc", "gcc", "clang")):
        if (path := shutil.which(name)) is not None:
            return Capability(True, path)
    return Capability(False, "no C compiler found; install gcc or clang")


def native_core() -> Capability:
    """Tell whether the compiled part of this package loads."""
    try:
        module = importlib.import_module("contention_lab.native._core")
    except ImportError as error:
        return Capability(False, f"{error}; install the package with pip to compile it")
    return Capability(True, str(module.__file__))


def cpu_quota() -> float | None:
    """Return how many CPUs the control group grants, None where it sets no limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None
