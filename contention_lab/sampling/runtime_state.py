"""Where a running Python keeps its own state, and who has its GIL.

The interpreter's state is one object of known name, so that a thread asleep on a word inside it
waits for the GIL: every wait for a lock of the program is elsewhere. Who has the GIL is read from
the same object, without stopping the process; its layout is not assumed but recognised, by the
threads that it must name.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contention_lab.sampling.elf_symbol import find_symbol

if TYPE_CHECKING:
    from collections.abc import Collection

SYMBOL: Final = "_PyRuntime"
_GIL: Final = struct.Struct("<QQQ")  # switch interval in µs, last holder, whether it is held
_LONGEST_INTERVAL_US: Final = 100_000_000
_THREAD_STATE_BYTES: Final = 512
_LOWEST_ADDRESS: Final = 4096
_LARGEST_STATE: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Region:
    """A range of addresses of the process."""

    start: int
    end: int

    def __contains__(self, address: object) -> bool:
        """Tell whether an address is in it."""
        return isinstance(address, int) and self.start <= address < self.end


def runtime_region(pid: int) -> Region | None:
    """Return where the interpreter's state is; None where that is not known.

    Raises
    ------
    PermissionError
        The process may not be looked at.
    """
    images: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "python" in Path(fields[5]).name:
            start = int(fields[0].partition("-")[0], 16)
            images.setdefault(fields[5], start - int(fields[2], 16))
    # The library first: a program that is linked to it has no such object of its own.
    for path in sorted(images, key=lambda path: "libpython" not in path):
        symbol = find_symbol(Path(f"/proc/{pid}/root{path}"), SYMBOL)
        if symbol is not None and symbol.size:
            start = images[path] + symbol.offset
            return Region(start, start + symbol.size)
    return None


class GilReader:
    """Who has the GIL, by its thread's number.

    Parameters
    ----------
    pid
        The process.
    region
        Its interpreter's state.
    """

    def __init__(self, pid: int, region: Region) -> None:
        self._pid = pid
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self._region = region
        self._at = 0
        self._threads: dict[int, int] = {}

    def close(self) -> None:
        """Look no more."""
        os.close(self._memory)

    def find(self, threads: Collection[int]) -> bool:
        """Find the GIL, by the numbers (gettid) of the process's threads; tell whether it is found.

        It is the record in the interpreter's state of a switch interval, the state of one of these
        threads, and a flag.
        """
        size = min(self._region.end - self._region.start, _LARGEST_STATE)
        data = self._read(self._region.start, size)
        self._at = 0
        for at in range(0, len(data) - _GIL.size, 8):
            interval, holder, held = _GIL.unpack_from(data, at)
            flag = held & 0xFFFFFFFF
            if not 0 < interval < _LONGEST_INTERVAL_US or flag > 1 or holder % 8:
                continue
            if holder > _LOWEST_ADDRESS and self._number(holder, threads):
                self._at = self._region.start + at
                break
        return self._at != 0

    def holder(self) -> int | None:
        """Return who has it now; 0: nobody, or nobody known; None: the GIL was not found."""
        if not self._at:
            return None
        data = self._read(self._at, _GIL.size)
        if len(data) != _GIL.size:
            return None
        _, holder, held = _GIL.unpack(data)
        if held & 0xFFFFFFFF == 0:
            return 0
        return self._threads.get(holder) or self._learn(holder)

    def _learn(self, state: int) -> int:
        try:
            known = {int(path.name) for path in Path(f"/proc/{self._pid}/task").iterdir()}
        except OSError:
            return 0
        return self._number(state, known)

    def _number(self, state: int, threads: Collection[int]) -> int:
        """Return the thread that a thread's state is of; 0 if it is no such thing."""
        data = self._read(state, _THREAD_STATE_BYTES)
        words: tuple[int, ...] = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
        for ident, number in pairwise(words):
            # `thread_id` and `native_thread_id` stand together; the first is an address.
            if number in threads and ident > 1 << 20:
                self._threads[state] = number
                return number
        return 0

    def _read(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._memory, size, address)
        except OSError:
            return b""
