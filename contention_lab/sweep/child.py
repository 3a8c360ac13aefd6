"""Starting the process of one run, and turning however it ends into a result or one line.

It knows nothing of the order of runs or of what their results mean. The child computes with one
BLAS thread: the variables are read when the library is loaded, so they are set before Python
starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from contention_lab.capture import native_layer

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE_BLAS_THREAD: Final[Mapping[str, str]] = dict.fromkeys(
    (
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
"""Environment that pins every BLAS that NumPy is built with to one thread."""

_TAIL_LINES: Final = 3


class RunFailed(Exception):  # noqa: N818
    """The process of a run crashed or gave no result; its text says how."""


def run_child(spec: Mapping[str, Any], *, layer: bool = False) -> dict[str, Any]:
    """Make one run in a fresh process and return what it measured.

    Parameters
    ----------
    spec
        As `point.measure` takes it.
    layer
        Preload the layer below Python, where it can be: the recorder then sees all use of the GIL.

    Raises
    ------
    RunFailed
        The process crashed, exited with an error, or did not answer.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "contention_lab.sweep.point"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **ONE_BLAS_THREAD, **(_with_layer() if layer else {})},
    ) as process:
        try:
            answer, complaint = process.communicate(json.dumps(spec))
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise RunFailed(f"{ending(process.returncode)}{_tail(complaint)}")
    try:
        result: dict[str, Any] = json.loads(answer)
    except json.JSONDecodeError as error:
        raise RunFailed(f"the process gave no result{_tail(complaint)}") from error
    return result


def _with_layer() -> dict[str, str]:
    path, _ = native_layer.find(sys.executable)
    before = os.environ.get(native_layer.PRELOAD)
    return {native_layer.PRELOAD: native_layer.with_layer(before, path)} if path else {}


def ending(status: int) -> str:
    """Say how a process ended, by its exit status (negative: the signal)."""
    if status >= 0:
        return f"the process exited with status {status}"
    try:
        return f"the process was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"the process was killed by signal {-status}"


def _tail(complaint: str) -> str:
    """Return the end of what the process wrote to stderr, on one line."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    return f": {' | '.join(lines[-_TAIL_LINES:])}" if lines else ""
