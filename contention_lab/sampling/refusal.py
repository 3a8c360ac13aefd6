"""Why a process cannot be sampled, in one line, with the way out that applies here."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_MACHINE: Final = "native/_layer"


class AttachError(Exception):
    """The process cannot be sampled: one line, what, why and what to type next."""


def missing(pid: int) -> AttachError:
    """Return what to say of a process that is not there."""
    return AttachError(f"there is no process {pid}: look for it with `ps -C python3 -o pid,args`")


def not_python(pid: int, name: str) -> AttachError:
    """Return what to say of a process that does not run CPython."""
    whole = f"process {pid} ({name})" if name else f"process {pid}"
    return AttachError(
        f"{whole} is no running CPython: give the PID of the Python itself, not of a shell or "
        "launcher that started it"
    )


def ended(pid: int) -> AttachError:
    """Return what to say of a process that ended before anything was seen."""
    return AttachError(
        f"process {pid} ended before it was sampled: to see it from its start, "
        "contention-lab record PROGRAM"
    )


def already_recorded(pid: int) -> AttachError:
    """Return what to say of a process that records itself."""
    return AttachError(
        f"process {pid} is being recorded by contention-lab, and its own trace says more than "
        "samples: for both at once, contention-lab record --sample PROGRAM"
    )


def not_permitted(pid: int, proc: Path = Path("/proc"), system: str = sys.platform) -> AttachError:
    """Return what to say where this process may not look into another one: which way out applies.

    Parameters
    ----------
    pid
        The other process.
    proc, system
        Where the kernel says it, and which kernel it is.
    """
    return AttachError(f"no permission to look into process {pid}: {_way_out(pid, proc, system)}")


def _way_out(pid: int, proc: Path, system: str) -> str:
    again = f"sudo contention-lab attach {pid}"
    if system == "darwin":
        return f"macOS lets only root do that: {again}"
    mine, theirs = os.geteuid(), _owner(pid, proc)
    if mine == 0:
        return (
            "root has no CAP_SYS_PTRACE here, as in a container without it: start the container "
            "with --cap-add SYS_PTRACE"
        )
    if theirs is not None and theirs != mine:
        return f"it belongs to another user (uid {theirs}): {again}"
    scope = _scope(proc)
    if scope == 1:
        return (
            f"kernel.yama.ptrace_scope is 1: {again}, or until the next boot, for all: "
            "sudo sysctl kernel.yama.ptrace_scope=0"
        )
    if scope == 2:
        return f"kernel.yama.ptrace_scope is 2, so that it takes CAP_SYS_PTRACE: {again}"
    if scope == 3:
        return (
            "kernel.yama.ptrace_scope is 3, which nobody can change before the next boot: "
            "contention-lab record PROGRAM needs no ptrace"
        )
    return f"it keeps others out, or lives in another namespace: {again}"


def _owner(pid: int, proc: Path) -> int | None:
    """Return the effective user of a process; None where that is not known."""
    try:
        for line in (proc / str(pid) / "status").read_text().splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[2])
    except (OSError, ValueError, IndexError):
        pass
    return None


def _scope(proc: Path) -> int | None:
    try:
        return int((proc / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def is_recorded(pid: int, proc: Path = Path("/proc")) -> bool:
    """Tell whether a process has the recorder's native layer in it."""
    try:
        maps = (proc / str(pid) / "maps").read_text(errors="replace")
    except OSError:
        return False
    return any("contention_lab" in line and _MACHINE in line for line in maps.splitlines())
