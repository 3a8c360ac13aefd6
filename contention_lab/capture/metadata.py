"""What a trace says about the program, the interpreter and the machine it was recorded on.

Nothing here may be slow or import what the program may not: it runs in the recorded program before
it starts. That is why JSON is written by hand.
"""

import os
import sys
import time

import contention_lab
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def gil_enabled() -> bool:
    """Whether this interpreter runs with a GIL now (a free-threaded build may turn it on)."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return bool(asked()) if asked is not None else True


def usable_cores() -> int:
    """The number of cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


def describe(level: str) -> "dict[str, Any]":
    """The metadata of a recording that starts now; `trace/FORMAT.md` lists the keys."""
    argv = _argv()
    system = os.uname()
    now = time.time()
    return {
        "program": argv[0] if argv else "",
        "argv": argv,
        "cwd": _cwd(),
        "python": {
            "version": sys.version.split()[0],
            "implementation": _implementation(),
            "gil": gil_enabled(),
            "executable": sys.executable,
        },
        "machine": {
            "cores": usable_cores(),
            "system": system.sysname,
            "release": system.release,
            "processor": system.machine,
        },
        "package_version": contention_lab.__version__,
        "start_time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        + f".{int(now % 1 * 1e6):06d}+00:00",
        "level": level,
        "switch_interval_s": sys.getswitchinterval(),
        "acquire_cost_ns": acquire_cost_ns(),
        "gil_source": _gil_source(),
        "native_layer": _core.layer()[0],
    }


def acquire_cost_ns() -> float:
    """What one `with lock: pass` of a free lock costs here and now, the loop around it taken off.

    The least of a few rounds of a tenth of a millisecond, before anything is recorded.
    """
    lock, rounds = _core.Mutex(), range(1000)
    least = loop = float("inf")
    for _ in range(3):
        begun = time.perf_counter_ns()
        for _ in rounds:
            pass
        between = time.perf_counter_ns()
        for _ in rounds:
            with lock:
                pass
        loop = min(loop, between - begun)
        least = min(least, time.perf_counter_ns() - between)
    return max(0.0, least - loop) / len(rounds)


_WAITING = ("sqlite3",)
"""Modules whose native code waits for locks of its own."""


def waiting_modules() -> "list[str]":
    """Those modules that the program has imported whose native code waits for its own locks."""
    return [name for name in _WAITING if name in sys.modules]


def _gil_source() -> str:
    """Where the trace has the GIL from: every event, samples, or nowhere."""
    if not gil_enabled():
        return "none"
    return "events" if _core.layer()[1] else "samples"


def encode(metadata: "dict[str, Any]") -> bytes:
    """Metadata as the JSON of a META chunk, in ASCII (lone surrogates survive)."""
    return _json(metadata).encode("ascii")


def _json(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(str(k))}: {_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_json, value)) + "]"
    return _text(str(value))


def _text(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _argv() -> list[str]:
    """`sys.argv`; where Python has not yet put a module's file there, the name of the module."""
    argv = [str(word) for word in getattr(sys, "argv", [])]
    if argv[:1] == ["-m"]:
        typed = getattr(sys, "orig_argv", argv)
        argv[0] = "-m " + typed[len(typed) - len(argv)].removeprefix("-m")
    return argv


def _implementation() -> str:
    name = sys.implementation.name
    return {"cpython": "CPython"}.get(name, name)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder is gone
        return ""
