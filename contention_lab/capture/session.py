"""One recording: from `record(path)` to the end of its `with` block.

It opens the file and tells the native recorder to start and stop; it does not patch anything.
There is at most one recording in a process, because the locks look at one global word to see
whether to record.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contention_lab.capture.metadata import describe, encode
from contention_lab.native import _core

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

LEVELS: Final = {"counters": 0, "profile": 1, "trace": 2}
RING_BYTES: Final = {"counters": 4096, "profile": 1 << 18, "trace": 1 << 20}
DEFAULT_STACK_DEPTH: Final = 64
HIGH_DESCRIPTOR: Final = 100
"""The trace file's descriptor is kept out of the range that programs count on being next."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a finished recording says of itself.

    Attributes
    ----------
    waits, holds : int
        Records written.
    dropped_waits, dropped_holds : int
        Records that found no room; the counters in the trace are exact all the same.
    bytes_written : int
        Size of the trace file.
    unrecorded_threads : int
        Threads for which there was no memory to record them.
    error : int
        errno of the first failed write, 0 if none.
    """

    waits: int
    holds: int
    dropped_waits: int
    dropped_holds: int
    bytes_written: int
    unrecorded_threads: int
    error: int


class Session:
    """A recording; made by `record`.

    Attributes
    ----------
    path : str
        The trace file.
    level : str
        "counters", "profile" or "trace".
    summary : Summary or None
        Set when the recording has stopped.
    """

    def __init__(self, path: str, level: str, stack_depth: int, ring_bytes: int) -> None:
        self.path = path
        self.level = level
        self.summary: Summary | None = None
        self._stack_depth = stack_depth
        self._ring_bytes = ring_bytes
        self._started_at = ""

    def start(self) -> None:
        """Start recording.

        Raises
        ------
        RuntimeError
            Another recording is active in this process; the message says who started it.
        OSError
            The file cannot be opened or written.
        """
        global _active
        if _active is not None:
            raise RuntimeError(
                f"already recording to {_active.path} (started at {_active._started_at}); "
                "stop that recording first"
            )
        fd = _open(self.path)
        _core.start(
            fd,
            LEVELS[self.level],
            self._stack_depth,
            self._ring_bytes,
            encode(describe(self.level)),
        )
        self._started_at = _caller()
        self.summary = None
        _active = self
        atexit.register(self._stop_at_exit)

    def stop(self) -> Summary:
        """Stop recording and complete the file; a failed write is told in one line on stderr.

        Raises
        ------
        RuntimeError
            This recording is not active.
        """
        global _active
        if _active is not self:
            raise RuntimeError(f"not recording to {self.path}")
        _active = None
        atexit.unregister(self._stop_at_exit)
        self.summary = Summary(**_core.stop())
        if self.summary.error and sys.stderr is not None:
            print(
                f"contention-lab: writing {self.path} failed: {os.strerror(self.summary.error)}; "
                "the trace ends there, the program went on",
                file=sys.stderr,
            )
        return self.summary

    def _stop_at_exit(self) -> None:
        if _active is self:
            self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if _active is self:  # a forked child leaves its parent's recording alone
            self.stop()


_active: Session | None = None


def record(
    path: str | os.PathLike[str],
    *,
    level: str = "profile",
    stack_depth: int = DEFAULT_STACK_DEPTH,
    ring_bytes: int | None = None,
) -> Session:
    """Record lock contention into a trace file: `with record("run.clt"): work()`.

    Parameters
    ----------
    path : path-like
        The trace file; replaced if it exists.
    level : {"profile", "counters", "trace"}
        counters: exact counts and sums per lock and thread. profile: also every contended wait and
        every hold that blocked somebody, with stacks. trace: also every other hold.
    stack_depth : int
        Frames kept of each stack, innermost first (1 to 128).
    ring_bytes : int, optional
        Size of each thread's event buffer, a power of two of at least 4096; events that find it
        full are dropped and counted. By default 256 KiB, at level trace 1 MiB.

    Returns
    -------
    Session
        A context manager; `.start()` and `.stop()` do the same without `with`.

    Raises
    ------
    ValueError
        A parameter is out of range.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    if not 1 <= stack_depth <= _core.MAX_STACK_DEPTH:
        raise ValueError(f"stack_depth must be 1 to {_core.MAX_STACK_DEPTH}, not {stack_depth}")
    size = RING_BYTES[level] if ring_bytes is None else ring_bytes
    if size < 4096 or size > 1 << 30 or size & (size - 1):
        raise ValueError(f"ring_bytes must be a power of two from 4096 to 2**30, not {size}")
    return Session(os.fspath(path), level, stack_depth, size)


def _open(path: str) -> int:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
    except OSError:  # a low limit on descriptors
        return fd
    os.close(fd)
    return high


def _caller() -> str:
    package = str(Path(__file__).parent)
    for code, line in _core.stack():
        if not code.co_filename.startswith(package):
            return f"{code.co_filename}:{line}"
    return "an unknown place"


def _forget_in_child() -> None:
    global _active
    if _active is not None:
        atexit.unregister(_active._stop_at_exit)
    _active = None


os.register_at_fork(after_in_child=_forget_in_child)
