"""Native locks and stacks of a trace: what the layer below Python saw of C, C++ and Rust code.

It keeps what the file says. Names come from the dynamic tables of libraries, which list only what
they export: `is_nearest` marks those that may be another function's.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from contention_lab.trace.native_lines import Place, native_lines
from contention_lab.trace.native_names import readable
from contention_lab.trace.varied import varied_records, word_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contention_lab.trace.chunk import Chunk

NAMED: Final = struct.Struct("<IIQII")
IMAGE: Final = struct.Struct("<II")
NEAREST: Final = 1


class NativeKind(IntEnum):
    """What a native lock is."""

    OTHER = 0
    MUTEX = 1
    RWLOCK = 2
    COND = 3
    SEMAPHORE = 4
    SPINLOCK = 5
    BARRIER = 6
    FUTEX = 7
    THREAD = 8
    YIELD = 9

    @property
    def type_name(self) -> str:
        """What its type is called in C (`pthread_mutex`)."""
        return _TYPE_NAMES[self]


_TYPE_NAMES: Final = {
    NativeKind.OTHER: "native lock",
    NativeKind.MUTEX: "pthread_mutex",
    NativeKind.RWLOCK: "pthread_rwlock",
    NativeKind.COND: "pthread_cond",
    NativeKind.SEMAPHORE: "sem",
    NativeKind.SPINLOCK: "pthread_spinlock",
    NativeKind.BARRIER: "pthread_barrier",
    NativeKind.FUTEX: "futex",
    NativeKind.THREAD: "pthread",
    NativeKind.YIELD: "sched_yield",
}


@dataclass(frozen=True, slots=True)
class NativeFrame:
    """A place in native code.

    Attributes
    ----------
    symbol
        The function; empty where there is none.
    image
        Its file; empty for the program itself.
    offset
        Of the address in that file.
    is_nearest
        The symbol is only the nearest exported one before the address.
    """

    symbol: str
    image: str
    offset: int
    is_nearest: bool

    @property
    def label(self) -> str:
        """`libsqlite3.so.0: sqlite3_step`; `~` before a name that is only the nearest."""
        file = PurePosixPath(self.image).name or "program"
        if not self.symbol:
            return f"{file}+{self.offset:#x}"
        return f"{file}: {'~' if self.is_nearest else ''}{self.symbol}"


@dataclass(frozen=True, slots=True)
class NativeLock:
    """A lock of the C library.

    Attributes
    ----------
    id
        Its number among the native locks of the file.
    kind
        What it is.
    address
        In the recorded process.
    symbol, image
        The function first seen to wait for it, and that function's file; as in `NativeFrame`.
    """

    id: int
    kind: NativeKind
    address: int
    symbol: str
    image: str

    @property
    def label(self) -> str:
        """`libsqlite3.so.0: sqlite3_step`, of the first function seen to wait for it."""
        file = PurePosixPath(self.image).name or "program"
        return f"{file}: {self.symbol}" if self.symbol else file


def is_native(meta: Mapping[str, Any]) -> bool:
    """Whether it is the trace of a program that is not Python.

    Parameters
    ----------
    meta
        What the trace says of itself.
    """
    python = meta.get("python")
    return isinstance(python, dict) and python.get("version") == ""


class NativeTables:
    """Tables by id, filled chunk by chunk.

    Attributes
    ----------
    locks, frames
        By id.
    stacks
        Frame ids by stack id, innermost first.
    build_ids
        What the linker called each file, in hexadecimal digits, by path; empty where it has none.
        The program itself has an empty path in a Python.
    places
        Source file, line and function of calls by file and offset; only of a program that is not
        Python.
    without_lines
        Why the program's own calls have no lines; empty if they have.
    """

    def __init__(self) -> None:
        self.locks: dict[int, NativeLock] = {}
        self.frames: dict[int, NativeFrame] = {}
        self.stacks: dict[int, tuple[int, ...]] = {}
        self.build_ids: dict[str, str] = {}
        self.places: dict[tuple[str, int], Place] = {}
        self.without_lines = ""
        self._odd: Counter[str] = Counter()

    def add_locks(self, chunk: Chunk) -> None:
        """Read a NATIVE_LOCKS chunk."""
        for (lock, kind, address, *_), (symbol, image) in varied_records(chunk, NAMED, texts=2):
            if not lock or lock in self.locks:
                self._odd["native locks have the id 0 or one that is taken"] += 1
                continue
            known = NativeKind(kind) if kind in list(NativeKind) else NativeKind.OTHER
            self.locks[lock] = NativeLock(lock, known, address, readable(symbol), image)

    def add_frames(self, chunk: Chunk) -> None:
        """Read a NATIVE_FRAMES chunk."""
        for (frame, flags, offset, *_), (symbol, image) in varied_records(chunk, NAMED, texts=2):
            if not frame or frame in self.frames:
                self._odd["native frames have the id 0 or one that is taken"] += 1
                continue
            is_nearest = bool(flags & NEAREST)
            self.frames[frame] = NativeFrame(readable(symbol), image, offset, is_nearest)

    def add_images(self, chunk: Chunk) -> None:
        """Read a NATIVE_IMAGES chunk."""
        for _, (path, build_id) in varied_records(chunk, IMAGE, texts=2):
            self.build_ids.setdefault(path, build_id)

    def add_stacks(self, chunk: Chunk) -> None:
        """Read a NATIVE_STACKS chunk."""
        for stack, _, frames in word_lists(chunk):
            if not stack or stack in self.stacks:
                self._odd["native stacks have the id 0 or one that is taken"] += 1
                continue
            self.stacks[stack] = frames

    def look_up(self, calls: Mapping[str, Sequence[int]], program: str) -> None:
        """Look for the lines of calls.

        Parameters
        ----------
        calls
            Their offsets by file.
        program
            The program's own file.
        """
        for path, offsets in calls.items():
            found = native_lines(path, self.build_ids.get(path, ""), offsets)
            self.places.update({(path, at): place for at, place in found.places.items()})
            if path == program:
                self.without_lines = found.reason

    def problems(self) -> Iterator[str]:
        """Yield what could not be true, one sentence each."""
        for what, times in sorted(self._odd.items()):
            yield f"{times} {what}"
