"""What a trace says about the program, the interpreter and the machine it was recorded on.

Nothing here may be slow or import NumPy: it runs in the recorded program before it starts.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import contention_lab


def gil_enabled() -> bool:
    """Whether this interpreter runs with a GIL now (a free-threaded build may turn it on)."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return True
    asked = getattr(sys, "_is_gil_enabled", None)
    return bool(asked()) if asked is not None else False


def usable_cores() -> int:
    """The number of cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


def describe(level: str) -> dict[str, Any]:
    """The metadata of a recording that starts now; `trace/FORMAT.md` lists the keys."""
    argv = list(getattr(sys, "argv", []))
    return {
        "program": argv[0] if argv else "",
        "argv": argv,
        "cwd": _cwd(),
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "gil": gil_enabled(),
            "executable": sys.executable,
        },
        "machine": {
            "cores": usable_cores(),
            "system": platform.system(),
            "release": platform.release(),
            "processor": platform.machine(),
        },
        "package_version": contention_lab.__version__,
        "start_time": datetime.now(UTC).isoformat(),
        "level": level,
        "switch_interval_s": sys.getswitchinterval(),
    }


def encode(metadata: dict[str, Any]) -> bytes:
    """Metadata as the JSON of a META chunk (lone surrogates escaped)."""
    return json.dumps(metadata, ensure_ascii=True, default=str).encode("ascii")


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # the folder is gone
        return ""
