"""The machine and the interpreter: facts that a result carries and `doctor` shows.

It measures nothing and changes nothing; every fact that a system does not offer is None or "".
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

_CLOCK_SOURCE: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CPU_INFO: Final = Path("/proc/cpuinfo")


def usable_cores() -> int:
    """Return how many cores this process may use: those of its affinity mask."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]


def clock_source() -> str:
    """Return the kernel's clock source ("tsc", "kvm-clock", ...), "" where it does not say."""
    try:
        return _CLOCK_SOURCE.read_text().strip()
    except OSError:
        return ""


def processor() -> str:
    """Return the processor's name."""
    for line in _cpu_info():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def processor_flags() -> frozenset[str]:
    """Return the processor's feature flags, none where the kernel does not list them."""
    for line in _cpu_info():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def _cpu_info() -> list[str]:
    try:
        return _CPU_INFO.read_text().splitlines()
    except OSError:
        return []


def gil_enabled() -> bool:
    """Tell whether the GIL is on in this process."""
    probe = getattr(sys, "_is_gil_enabled", None)
    return True if probe is None else bool(probe())


def free_threaded_build() -> bool:
    """Tell whether this Python can run without a GIL."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def blas_libraries() -> list[dict[str, Any]]:
    """Return the BLAS and OpenMP libraries that NumPy loads, with their number of threads.

    Returns
    -------
    list
        "library", "version", "threads", "architecture"; loads NumPy.
    """
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    return [
        {
            "library": pool["internal_api"],
            "version": pool.get("version") or "",
            "threads": pool["num_threads"],
            "architecture": pool.get("architecture") or "",
        }
        for pool in threadpool_info()
    ]


def machine_facts() -> dict[str, Any]:
    """Return what a result says of the machine; load and BLAS aside."""
    return {
        "cores": usable_cores(),
        "cores_online": os.cpu_count() or 1,
        "processor": processor(),
        "system": platform.system(),
        "release": platform.release(),
        "clock": clock_source(),
    }


def python_facts() -> dict[str, Any]:
    """Return what a result says of the interpreter."""
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "gil": gil_enabled(),
    }
