"""One run of a command, in a fresh process: how long it took, and what it printed.

It gives the command nothing but its arguments: the environment is the caller's, standard input is
empty. Output goes to a file, so that a command that prints much waits for nobody.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.sweep.child import RunFailed, ending
from contention_lab.sweep.errors import SweepError
from contention_lab.sweep.figure import last_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class CommandRun:
    """What one process did.

    Attributes
    ----------
    wall_s
        From its start to its end.
    cpu_s
        CPU time of it and of the children it waited for.
    output
        What it printed, standard output and standard error as they came.
    """

    wall_s: float
    cpu_s: float
    output: str


def run_command(words: Sequence[str]) -> CommandRun:
    """Run a command to its end.

    Raises
    ------
    SweepError
        It cannot be started.
    RunFailed
        It ended with an error; with the last lines it printed.
    """
    with tempfile.TemporaryFile() as output:
        before = os.times()
        start = time.perf_counter()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise SweepError(f"{words[0]}: {error.strerror or error}") from error
        try:
            status = process.wait()
        except BaseException:
            _end(process)
            raise
        wall_s = time.perf_counter() - start
        after = os.times()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if status != 0:
        raise RunFailed(f"{ending(status)}{last_lines(text)}")
    cpu_s = after.children_user - before.children_user
    cpu_s += after.children_system - before.children_system
    return CommandRun(wall_s, cpu_s, text)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it has started, as Ctrl-C on a terminal does; then for certain."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=2)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
