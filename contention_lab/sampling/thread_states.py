"""What the kernel says of each thread of a process, now: on a CPU, or in which call asleep.

It stops nothing: a file of the thread's is read, which costs the thread nothing while it sleeps.
Linux only; elsewhere there are stacks, and no more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contention_lab.sampling.classes import FUTEX_CALLS
from contention_lab.sampling.system_calls import call_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_LINE: Final = 256


@dataclass(frozen=True, slots=True)
class KernelState:
    """One thread, at one moment.

    Attributes
    ----------
    on_cpu
        On a CPU, or waiting for one.
    call
        The system call it sleeps in; empty where it sleeps in none (a page fault).
    word
        The address of the word it waits for, if the call is a wait for one; else 0.
    """

    on_cpu: bool
    call: str = ""
    word: int = 0


RUNNING: Final = KernelState(on_cpu=True)


class ThreadStates:
    """The threads of one process.

    Raises
    ------
    PermissionError
        When first looked at, if this process may not look.
    """

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
        self._files: dict[int, int] = {}

    def close(self) -> None:
        """Look no more."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def look(self) -> Iterator[tuple[int, KernelState]]:
        """Yield the threads that there are now, by their number (gettid), with their state."""
        numbers = {int(path.name) for path in Path(self._folder).iterdir()}
        for gone in self._files.keys() - numbers:
            os.close(self._files.pop(gone))
        for number in numbers:
            try:
                file = self._files.get(number)
                if file is None:
                    path = f"{self._folder}/{number}/syscall"
                    file = self._files[number] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                yield number, parsed(os.pread(file, _LONGEST_LINE, 0))
            except (FileNotFoundError, ProcessLookupError):
                continue

    def cpu_ns(self) -> dict[int, int]:
        """Return the CPU time of each thread since it began; of those that say it."""
        found = {}
        for number in self._files:
            try:
                line = Path(f"{self._folder}/{number}/schedstat").read_bytes()
                found[number] = int(line.split()[0])
            except (OSError, ValueError, IndexError):
                continue
        return found


def parsed(line: bytes) -> KernelState:
    """Return the state that a line of /proc/PID/task/TID/syscall says."""
    fields = line.split()
    if not fields or fields[0] == b"running":
        return RUNNING
    number = int(fields[0])
    if number < 0:
        return KernelState(on_cpu=False)
    call = call_name(number)
    word = int(fields[1], 16) if call in FUTEX_CALLS else 0
    return KernelState(on_cpu=False, call=call, word=word)
