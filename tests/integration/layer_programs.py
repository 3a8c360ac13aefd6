"""Programs under `record` with the layer below Python, and C code for them to meet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl
from contention_lab.capture import native_layer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.trace import Trace

LAYER, WHY_NOT = native_layer.find(sys.executable)
needs_layer = pytest.mark.skipif(not LAYER, reason=f"no layer: {WHY_NOT}")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@dataclass(frozen=True)
class Run:
    """What became of a program."""

    folder: Path
    status: int
    out: str
    err: str

    @property
    def trace(self) -> Trace:
        """The trace, which must be whole."""
        trace = cl.load(self.folder / "run.clt")
        assert trace.complete
        assert not trace.problems
        return trace


def run_recorded(
    folder: Path,
    program: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> Run:
    """Run a Python program under `record`."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "contention_lab", "record", "-q", "-o", "run.clt"]
    variables = {**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)}
    done = subprocess.run(
        [*command, *options, "program.py", *arguments],
        cwd=folder,
        env={**variables, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Run(folder, done.returncode, done.stdout, done.stderr)


def compiled(folder: Path, source: str, name: str, *options: str) -> str:
    """Compile C code to a shared object and return its path."""
    (folder / f"{name}.c").write_text(textwrap.dedent(source))
    path = folder / f"{name}.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-pthread", *options, f"{name}.c", "-o", str(path)],
        cwd=folder,
        check=True,
    )
    return str(path)


def record_program(folder: Path, source: str, *options: str) -> tuple[int, str, str]:
    """Compile a C program and record it; return its status, output and errors."""
    (folder / "program.c").write_text(textwrap.dedent(source))
    command = ["cc", "-O2", "-pthread", *options, "program.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-q", "--", "./program"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def load_program(folder: Path) -> Trace:
    """Return the trace of a recorded program, which must be whole."""
    trace = cl.load(folder / "program.clt")
    assert trace.complete
    assert not trace.problems
    return trace


def functions(trace: Trace, stack: Any) -> list[str]:
    """Return the functions of a stack, innermost first."""
    return [frame.function for frame in trace.stack(int(stack))]


def length_ns(event: Any) -> int:
    """Return how long an event lasted."""
    return int(event["end_ns"] - event["start_ns"])
