"""One recording: from `record(path)` to the end of its `with` block.

It opens the file, starts the native recorder, has Python's locks replaced, and undoes it all. There
is at most one recording in a process, because the locks look at one global word to see whether to
record. Imports nothing that the recorded program may not have imported.
"""

import atexit
import os
import sys

from contention_lab.capture import patches, process, told
from contention_lab.capture.existing import exchange_existing, restore
from contention_lab.capture.kept_factories import kept_factories
from contention_lab.capture.metadata import describe, encode, waiting_modules
from contention_lab.capture.strangers import strangers
from contention_lab.capture.trace_file import child_path, identity, open_trace, remove
from contention_lab.capture.undo import Undo
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Final, Self

    from contention_lab.capture.existing import Note
    from contention_lab.capture.references import Referred
    from contention_lab.capture.summary import Summary

LEVELS: "Final" = {"counters": 0, "profile": 1, "trace": 2}
RING_BYTES: "Final" = {"counters": 4096, "profile": 1 << 18, "trace": 1 << 20}
DEFAULT_STACK_DEPTH: "Final" = 64


class Session:
    """A recording; made by `record`.

    Attributes
    ----------
    path : str
        The trace file.
    level : str
        "counters", "profile" or "trace".
    existing, subprocesses : bool
        See `record`.
    layer : str
        The layer below Python that children are to preload, empty for none.
    unrecorded : list
        After the end: child processes that could not be recorded, as in the metadata's `not_seen`.
    """

    def __init__(
        self,
        path: str,
        level: str,
        stack_depth: int = DEFAULT_STACK_DEPTH,
        ring_bytes: int | None = None,
        *,
        existing: bool = False,
        subprocesses: bool = False,
    ) -> None:
        self.path = path
        self.level = level
        self.existing = existing
        self.subprocesses = subprocesses
        self.family = path
        self.layer = ""
        self.is_child = self.is_forked = False
        self.totals: dict[str, int] = {}
        self.unrecorded: list[Note] = []
        self._not_seen: list[Note] = []
        self._is_ending = False
        self._stack_depth = stack_depth
        self._ring_bytes = RING_BYTES[level] if ring_bytes is None else ring_bytes
        self._started_by = ""
        self._file: tuple[int, int] | None = None
        self._undo = Undo()
        self._exchanged: list[Referred] = []

    @property
    def summary(self) -> "Summary | None":
        """What the finished recording says of itself; None before it has stopped."""
        from contention_lab.capture.summary import Summary

        return Summary(**self.totals) if self.totals else None

    def start(self) -> None:
        """Start recording.

        Raises
        ------
        RuntimeError
            Another recording is active in this process; the message says who started it.
        FileExistsError
            The file is not a trace, and is not replaced.
        BlockingIOError
            Another process is recording to this file.
        OSError
            The file cannot be opened or written.
        """
        caller = _caller()
        _claim(self.path, caller)
        try:
            self.family = os.path.abspath(self.path)
            self.begin(open_trace(self.path), caller)
        finally:
            _starting.clear()

    def begin(self, fd: int, started_by: str) -> None:
        """Start recording to an open file, which is the recorder's from then on.

        Parameters
        ----------
        fd
            The file's descriptor.
        started_by
            Who to name when somebody wants to start a second recording.
        """
        if self.subprocesses:  # needed for nothing else, and a tenth of what a start costs
            from contention_lab.capture import children
            from contention_lab.capture.unrecorded import take_notes
        self._start_core(fd, started_by)
        try:
            _left_by_parent.restore()
            self._undo = Undo()
            self._not_seen = kept_factories()
            patches.install(self._undo)
            process.install(self._undo, active)
            if self.subprocesses:
                if not self.is_child:
                    take_notes(self.family)  # an earlier run's
                children.install(
                    self._undo, self.family, self.level, self.layer, existing=self.existing
                )
            self._exchanged, left_alone = exchange_existing(everything=self.existing)
            self._not_seen += left_alone
            _core.add_meta(encode({"not_seen": self._not_seen}))
        except BaseException:
            self._end_core()
            self._undo.restore()
            raise

    def add_metadata(self, metadata: "dict[str, Any]") -> None:
        """Say something of the program that runs, under keys that `trace/FORMAT.md` lists.

        Raises
        ------
        RuntimeError
            This recording is not active.
        """
        if _active is not self or self._is_ending:
            raise RuntimeError(f"not recording to {self.path}")
        _core.add_meta(encode(metadata))

    def stop(self) -> "Summary":
        """Stop recording and complete the file; a failed write is told in one line on stderr.

        Raises
        ------
        RuntimeError
            This recording is not active.
        """
        if _active is not self or self._is_ending:
            raise RuntimeError(f"not recording to {self.path}")
        self._end_core()
        self._undo.restore()
        restore(self._exchanged)
        self.tell()
        summary = self.summary
        assert summary is not None
        return summary

    def stop_at_exit(self) -> None:
        """Stop where the interpreter is about to end; locks stay what they are."""
        self.complete()
        self._undo.restore()

    def complete(self, *, to_execute: bool = False) -> None:
        """Complete the trace where the process is about to end, and leave Python as it is.

        Parameters
        ----------
        to_execute
            Whether it becomes another program. A forked child that did so at once had nothing to
            record.
        """
        if _active is self and not self._is_ending:
            self._end_core()
            self.tell()
            counted = "contended" if to_execute and self.is_forked else "acquires"
            if self.is_child and not self.totals[counted] and not self.totals["waits"]:
                remove(self.path)

    def tell(self) -> None:
        """Say what the user must know: here, that the trace is not whole."""
        failure = self.failure()
        if failure and not self.is_child and sys.stderr is not None:
            line = f"contention-lab: {self.path}: {failure}; {self.counted()}"
            _core.quietly(lambda: print(line, file=sys.stderr, flush=True))

    def failure(self) -> str:
        """Return what became of the file, if something did."""
        return told.failure(self.totals["error"], self.path, self._file)

    def counted(self) -> str:
        """Return the counters of the whole recording in words."""
        return told.counted(self.totals)

    def continue_in_child(self) -> None:
        """Record a forked child into its own file. What was replaced in the parent still is."""
        child = Session(
            child_path(self.family, os.getpid()),
            self.level,
            self._stack_depth,
            self._ring_bytes,
            existing=self.existing,
            subprocesses=True,
        )
        child.family = self.family
        child.layer = self.layer
        child.is_child = child.is_forked = True
        child._undo = self._undo
        try:
            child._start_core(open_trace(child.path, new=True), self._started_by)
        except OSError:  # the child's business goes on; the parent tells of a full disk
            return

    def continue_elsewhere(self) -> None:
        """Record on, into another file, after the process was to end and did not."""
        self._undo.restore()
        self.path = child_path(self.family, os.getpid())
        try:
            self.begin(open_trace(self.path, new=True), self._started_by)
        except (OSError, RuntimeError):
            return

    def _start_core(self, fd: int, started_by: str) -> None:
        global _active
        self._file = identity(fd)
        _core.start(
            fd,
            LEVELS[self.level],
            self._stack_depth,
            self._ring_bytes,
            encode(describe(self.level)),
        )
        self._started_by = started_by
        self.totals = {}
        _active = self
        atexit.register(self.stop_at_exit)

    def _end_core(self) -> None:
        global _active
        self._is_ending = True
        _core.add_meta(encode({"modules": waiting_modules()}))
        if self.subprocesses and not self.is_child:
            from contention_lab.capture.unrecorded import take_notes

            self.unrecorded = take_notes(self.family)
        late = strangers() + self.unrecorded
        if late:
            _core.add_meta(encode({"not_seen": self._not_seen + late}))
        atexit.unregister(self.stop_at_exit)
        try:
            self.totals = _core.stop()  # lets other threads run: none may start a recording yet
        finally:
            self._is_ending = False
            _active = None

    def __enter__(self) -> "Self":
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        if _active is self:  # a forked child leaves its parent's recording alone
            self.stop()


_active: Session | None = None
_starting: "dict[str, tuple[str, str]]" = {}  # at most one entry, see _claim()
_left_by_parent = Undo()


def record(
    path: str | os.PathLike[str],
    *,
    level: str = "profile",
    existing: bool = False,
    subprocesses: bool = False,
    stack_depth: int = DEFAULT_STACK_DEPTH,
    ring_bytes: int | None = None,
) -> Session:
    """Record lock contention into a trace file: `with record("run.clt"): work()`.

    Python's own locks are replaced while it records, and put back afterwards. What cannot be seen
    is listed in the trace's metadata under `not_seen`.

    Parameters
    ----------
    path : path-like
        The trace file; an earlier trace is replaced, any other file is not.
    level : {"profile", "counters", "trace"}
        counters: exact counts and sums per lock and thread. profile: also every contended wait and
        every hold that blocked somebody, with stacks. trace: also every other hold.
    existing : bool
        Whether locks that the program made before are recorded, too, as far as they can be replaced
        safely: free, and not referred to from a running function or from C. Those of the standard
        library's modules are in any case.
    subprocesses : bool
        Whether child processes that are Python of the same environment are recorded, too, each into
        a file beside this one: `run.<pid>.clt`.
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
    return Session(
        os.fspath(path),
        level,
        stack_depth,
        size,
        existing=existing,
        subprocesses=subprocesses,
    )


def active() -> Session | None:
    """Return the recording of this process, if there is one."""
    return _active


def refuse_second() -> None:
    """Raise RuntimeError where this process is being recorded; it says by whom."""
    if _active is not None:
        raise told.already(_active.path, _active._started_by)


def _claim(path: str, caller: str) -> None:
    """Take the right to start a recording, which one thread of all that try gets."""
    refuse_second()
    mine = path, caller
    theirs = _starting.setdefault("it", mine)
    if theirs is not mine:
        raise told.already(*theirs)
    if _active is not None:  # somebody has come to the end of this between our two looks
        _starting.clear()
    refuse_second()


def _caller() -> str:
    package = os.path.dirname(__file__)
    for code, line in _core.stack():
        if not code.co_filename.startswith(package):
            return f"{code.co_filename}:{line}"
    return "an unknown place"


def _after_fork_in_child() -> None:
    """Forget the parent's recording; its replacements stay until somebody records here."""
    global _active, _left_by_parent
    session, _active = _active, None
    _starting.clear()
    if session is None:
        return
    atexit.unregister(session.stop_at_exit)
    if session.subprocesses:
        session.continue_in_child()
    if _active is None:
        _left_by_parent = session._undo


os.register_at_fork(
    before=_core.fork_begins,
    after_in_parent=_core.fork_is_over,
    after_in_child=_after_fork_in_child,
)
