"""Under which conditions figures were measured: machine, interpreter, load, command.

Every function takes the mappings that `result.json` or a trace's metadata carry, and says nothing
where they are silent.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from contention_lab.report.quantity import seconds, share
from contention_lab.report.visible_text import visible

CALM_KINDS: Final = {"healthy", "idle-wait", ""}
"""Verdicts that accuse nobody."""
BUSY_SHARE: Final = 0.10
"""CPU taken by other programs that a page warns of."""
STEAL_SHARE: Final = 0.02
"""CPU withheld by the hypervisor that a page warns of."""

UNSEEN_LOCKS: Final = (
    "Locks made by Python code are recorded, from the start of the recording on. Locks inside the "
    "interpreter and in native libraries are not."
)
UNSEEN_NATIVE: Final = (
    "Locks made by Python code are recorded, from the start of the recording on; locks of native "
    "libraries where a thread had to wait, by way of the C library: one that spins without it, or "
    "makes its system calls itself, is not seen."
)
UNSEEN_PROGRAM: Final = (
    "The program is not Python: its locks of the C library are recorded, and waits in the kernel, "
    "from its first thread on. Spinlocks and atomics that a compiler has put in line are not seen. "
    "From when a thread has a lock that it found free is known only while others wait for it."
)
UNSEEN_BETWEEN: Final = (
    "This is made of samples. What happened between two of them is not known: shorter waits are "
    "met only by chance, times of single waits are known to about the interval, and nothing is "
    "counted. Which lock a thread waited for, and who had it, is read off the code that threads "
    "were in."
)
UNSEEN_GIL: Final = (
    "Waits for the GIL are measured where a lock had to wait first; elsewhere who has it is "
    "sampled, about a thousand times a second at most."
)
UNSEEN_CORES: Final = (
    "What threads did outside of locks is sampled, not recorded. A holder that was put off its "
    "core shows as a longer hold."
)


def unseen(python: Mapping[str, Any], *, native_layer: bool, sampled: bool = False) -> list[str]:
    """What a recording cannot show, one or two sentences each.

    Parameters
    ----------
    python
        What the trace says of the interpreter.
    native_layer
        Whether the C library's blocking calls were seen, and with them each wait for the GIL.
    sampled
        Whether nothing was recorded, but threads were sampled.
    """
    if sampled:
        return [UNSEEN_BETWEEN]
    if python.get("implementation") == "":
        return [UNSEEN_PROGRAM]
    lines = [UNSEEN_NATIVE if native_layer else UNSEEN_LOCKS]
    if python.get("gil", True) and not native_layer:
        lines.append(UNSEEN_GIL)
    return [*lines, UNSEEN_CORES]


def cores_said(cores: int | None) -> str:
    """`2 cores`, or that it is not known."""
    if cores is None:
        return "cores unknown"
    return f"{cores} core{'' if cores == 1 else 's'}"


def python_said(python: Mapping[str, Any]) -> str:
    """`CPython 3.11.7 with GIL`; nothing of a program that is not Python."""
    if python.get("implementation") == "":
        return ""
    words = [str(python.get("implementation") or "Python"), str(python.get("version") or "")]
    if python.get("gil") is not None:
        words.append("with GIL" if python["gil"] else "without GIL")
    return " ".join(filter(None, words))


def moment_said(text: str) -> str:
    """An ISO 8601 time to the minute, in its own zone: `2026-11-30 06:40 UTC`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def machine_rows(
    machine: Mapping[str, Any], python: Mapping[str, Any], package_version: str
) -> list[tuple[str, str]]:
    """Terms and texts about where it ran."""
    rows = [
        (
            "Processor",
            f"{machine.get('processor') or 'unknown'}, {cores_said(machine.get('cores'))}",
        ),
        ("System", " ".join(str(machine.get(key) or "") for key in ("system", "release")).strip()),
        ("Python", python_said(python)),
        ("contention-lab", package_version),
    ]
    if machine.get("clock"):
        rows.append(("Clock", str(machine["clock"])))
    libraries = [
        f"{library.get('library', 'BLAS')} {library.get('version') or ''}".strip()
        + f" ({library.get('threads', '?')} thread{'' if library.get('threads') == 1 else 's'})"
        for library in machine.get("blas") or ()
        if isinstance(library, Mapping)
    ]
    if libraries:
        rows.append(("BLAS", ", ".join(libraries)))
    for key, moment in (("load_before", "Load before"), ("load_during", "Load during")):
        text = _load_said(machine.get(key) or {})
        if text:
            rows.append((moment, text))
    return [(term, visible(text, 300)) for term, text in rows if text]


def load_warnings(machine: Mapping[str, Any]) -> list[str]:
    """A sentence for each thing that makes the figures doubtful."""
    found = []
    for key, moment in (("load_before", "before the start"), ("load_during", "during the runs")):
        load = machine.get(key) or {}
        others, stolen = load.get("others_share"), load.get("steal_share")
        if others is not None and others > BUSY_SHARE:
            found.append(f"Other programs used {share(others)} of all CPUs {moment}.")
        if stolen is not None and stolen > STEAL_SHARE:
            found.append(f"The hypervisor withheld {share(stolen)} of all CPUs {moment}.")
    return found


def sweep_command(scenario: Mapping[str, Any]) -> str:
    """The command that runs the sweep again, every parameter spelled out."""
    words = ["contention-lab", "run", str(scenario["name"])]
    words += ["--threads", ",".join(str(n) for n in scenario["threads"])]
    words += ["--repeats", str(scenario["repeats"])]
    for key, value in parameters(scenario):
        words += ["--set", f"{key}={value}"]
    return shlex.join(words)


def parameters(scenario: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Parameters as `--set` takes them."""
    return [
        (str(key), _setting(value)) for key, value in (scenario.get("parameters") or {}).items()
    ]


def runs_said(counts: Sequence[int]) -> str:
    """What the dots and intervals of a plot are, by how many runs each point has."""
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    if high == 1:
        return "One run for each point, so there is no interval."
    runs = f"{low} runs" if low == high else f"{low} to {high} runs"
    return f"Line: median of {runs}. Upright bar: minimum to maximum. Dots: single runs."


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(_setting(part) for part in value)
    return str(value)


def _load_said(load: Mapping[str, Any]) -> str:
    parts = []
    if load.get("load1") is not None:
        parts.append(f"load average {load['load1']:.2f}")
    if load.get("cpu_some_avg10") is not None:
        parts.append(f"some task waited for a CPU {load['cpu_some_avg10']:.0f} % of 10 s")
    if load.get("others_share") is not None:
        parts.append(f"other programs {share(load['others_share'])} of all CPUs")
    if load.get("steal_share") is not None:
        parts.append(f"withheld by the hypervisor {share(load['steal_share'])}")
    return ", ".join(parts)


def wall_said(wall_s: float | None) -> str:
    """How long everything took."""
    return f"{seconds(wall_s)} in all" if wall_s is not None else ""
