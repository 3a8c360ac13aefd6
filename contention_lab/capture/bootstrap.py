"""Beginning to record in a Python that `record` started, or that a recorded program started.

The program goes on whatever becomes of the trace. What the user is told is one line, at the end, on
the standard error stream, and only if that is still the one the program was given.
"""

import os
import sys

from contention_lab.capture import native_layer, trace_file
from contention_lab.capture.session import Session
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from contention_lab.capture.existing import Note
    from contention_lab.capture.functions import Functions

_STARTED_BY = "contention-lab record"
_HELPER = "from multiprocessing.resource_tracker import main"


def begin_recording(variables: "Mapping[str, str]") -> None:
    """Begin to record this process, as the variables of `launch.py` say (without their prefix)."""
    if variables["ROLE"] == "main":
        _begin_main(variables)
    elif not any(word.startswith(_HELPER) for word in sys.orig_argv):
        _begin_child(variables)


def _begin_main(variables: "Mapping[str, str]") -> None:
    session = ProgramSession(
        variables["TRACE"],
        variables["LEVEL"],
        existing="EXISTING" in variables,
        subprocesses="SUBPROCESSES" in variables,
    )
    session.family = session.path
    session.layer = variables.get("LAYER", "")
    session.shown = variables["SHOWN"]
    session.is_quiet = "QUIET" in variables
    session.watch = float(variables.get("WATCH", "0"))
    session.aborts = "ABORT" in variables
    if "FUNCTIONS" in variables:
        from contention_lab.capture.functions import Functions

        session.functions = Functions(variables["FUNCTIONS_FROM"], int(variables["FUNCTIONS"]))
    if session.subprocesses:
        trace_file.remove_child_traces(session.path)
    try:
        session.begin(_open(session, named="UNNAMED" not in variables), _STARTED_BY)
    except OSError as error:
        session.begin(session.do_without(error), _STARTED_BY)


def _open(session: "ProgramSession", *, named: bool) -> int:
    """Open the trace; if the same program is being recorded beside us, one with our pid."""
    try:
        return trace_file.open_trace(session.path)
    except BlockingIOError:
        if named:
            raise
    session.path = trace_file.child_path(session.path, os.getpid())
    session.shown = os.path.basename(session.path)
    return trace_file.open_trace(session.path)


def _begin_child(variables: "Mapping[str, str]") -> None:
    family = variables["TRACE"]
    session = Session(
        trace_file.child_path(family, os.getpid()),
        variables["LEVEL"],
        existing="EXISTING" in variables,
        subprocesses=True,
    )
    session.family = family
    session.layer = variables.get("LAYER", "")
    session.is_child = True
    session.begin(trace_file.open_trace(session.path, new=True), _STARTED_BY)


class ProgramSession(Session):
    """The recording of a whole program, which says at its end where the trace is.

    Attributes
    ----------
    shown : str
        The trace's path as the user knows it.
    is_quiet : bool
        Whether to say nothing.
    watch : float
        After how many seconds without a movement a hang is reported; 0 for never.
    aborts : bool
        Whether the program is aborted then.
    functions : Functions or None
        What records the functions, too.
    """

    shown = ""
    is_quiet = False
    watch = 0.0
    aborts = False
    functions: "Functions | None" = None
    _failure = ""
    _stderr: "tuple[int, int] | None" = None

    def begin(self, fd: int, started_by: str) -> None:
        """Begin, and note what the standard error stream is."""
        self._stderr = _identity(2)
        if self.layer and not self.is_quiet and _core.layer()[2]:
            why = native_layer.OTHER_BUILD
            self._write(f"without the native layer ({why}): {native_layer.LOST}")
        super().begin(fd, started_by)
        _core.look_out(int(self.watch * 1e9), self.aborts)
        if self.functions is not None:
            self.functions.start()

    def do_without(self, error: OSError) -> int:
        """Record without a file; return what stands for its descriptor."""
        self._failure = f"{error.strerror or error}, so there is no trace"
        return -1

    def tell(self) -> None:
        """Say where the trace is and what to do with it, or that there is none."""
        line = self._line(self._with_functions())
        if not line or self._stderr is None or _identity(2) != self._stderr:
            return
        _flush(sys.stdout, sys.__stdout__)
        _flush(sys.stderr, sys.__stderr__)
        self._write(line)

    def failure(self) -> str:
        """Return what became of the file, if something did."""
        return self._failure or super().failure()

    @staticmethod
    def _write(line: str) -> None:
        _core.say(f"contention-lab: {line}\n".encode("utf-8", "backslashreplace"))

    def _end_core(self) -> None:
        if self.functions is not None:
            self.functions.stop()
        super()._end_core()

    def _with_functions(self) -> tuple[str, str]:
        """Join functions and locks; return the file of both if there is one, and what to say."""
        recorded, self.functions = self.functions, None
        if recorded is None or self._failure:
            return "", ""
        from contention_lab.capture import merging

        try:
            late_ns = _core.quietly(lambda: recorded.write(merging.raw_path(self.path)))
            assert isinstance(late_ns, int)
        except OSError as error:
            return "", f"without functions: {error.strerror or error}"
        done, said = merging.join(self.path, late_ns)
        if not done:
            return "", f"without functions: {said}"
        timeline = merging.joined_path(self.shown)
        return timeline, f"{timeline} ({said})"

    def _line(self, functions: tuple[str, str]) -> str:
        failure = self.failure()
        if failure:
            return f"{self.shown}: {failure}; {self.counted()}"
        timeline, said = functions
        if self.is_quiet:
            return f"{self.shown}: {said}" if said and not timeline else ""
        children = len(trace_file.child_traces(self.path)) if self.subprocesses else 0
        also = f", and {children} of child processes beside it" if children else ""
        also += _those_missing(self.unrecorded)
        traces = trace_file.quoted(self.shown)
        if children:
            traces += f" {trace_file.quoted(os.path.splitext(self.shown)[0])}.*.clt"
        also += f", and {said}" if said else ""
        next_line = f"next: contention-lab diagnose {traces}"
        if timeline:
            next_line += f", contention-lab view {trace_file.quoted(timeline)}"
        return f"wrote {self.shown} ({self.counted()}){also}; {next_line}"


def _those_missing(notes: "list[Note]") -> str:
    """Say how many child processes were not recorded, and why the first was not."""
    if not notes:
        return ""
    missing = sum(int(note["count"]) for note in notes)
    processes = f"{missing} child process{'es were' if missing > 1 else ' was'}"
    example = str(notes[0]["what"]).removeprefix("child process ")
    return f"; {processes} not recorded ({example}: {notes[0]['why']})"


def _flush(stream: "TextIO | None", original: "TextIO | None") -> None:
    """Let what the program printed come first, unless the stream is the program's own."""
    if stream is not None and stream is original:
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # Python flushes it again at its end, and complains then


def _identity(fd: int) -> "tuple[int, int] | None":
    try:
        about = os.fstat(fd)
    except OSError:
        return None
    return about.st_dev, about.st_ino
