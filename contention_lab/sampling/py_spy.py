"""py-spy, run beside us: the stacks of another process's Python threads, at a rate.

Its timeline of stacks (`chrometrace`) is the one form that has threads and times; it has a line
only where a stack changes. By default the process is not stopped (`--nonblocking`): a stack that
is read while it changes is either refused by py-spy or wrong in its innermost frames for that one
sample. Native frames need it stopped, for a few tenths of a millisecond a sample.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contention_lab.sampling import refusal
from contention_lab.sampling.frame import SampledFrame
from contention_lab.sampling.refusal import AttachError

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = "py-spy"
_VERSION: Final = re.compile(r"^Python v(\S+)", re.MULTILINE)
_THREAD: Final = re.compile(r"^thread \((\d+)\)(?:: (.*))?$", re.DOTALL)
_COUNTS: Final = re.compile(r"Samples: (\d+) Errors: (\d+)")
_NATIVE: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs", ".S", ".so", ".f90")
_DUMP_LIMIT_S: Final = 30.0


def executable() -> str:
    """Return the path of py-spy.

    Raises
    ------
    AttachError
        It is not installed.
    """
    beside = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    for folder in beside:
        if (folder / NAME).is_file():
            return str(folder / NAME)
    found = shutil.which(NAME)
    if found is None:
        raise AttachError("py-spy is not installed: pip install py-spy")
    return found


def python_version(pid: int) -> str:
    """Return the version of the Python that a process runs, having looked into it once.

    Raises
    ------
    AttachError
        It is not there, no Python, or may not be looked into.
    """
    command = [executable(), "dump", "--nonblocking", "--pid", str(pid)]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_DUMP_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise AttachError(
            f"py-spy got no answer about process {pid} in {_DUMP_LIMIT_S:.0f} s"
        ) from None
    found = _VERSION.search(answer.stdout)
    if found:
        return found.group(1)
    raise failure(pid, answer.stderr)


def failure(pid: int, said: str) -> AttachError:
    """Return what to say where py-spy failed, by what it said."""
    if re.search("permission denied|operation not permitted", said, re.IGNORECASE):
        return refusal.not_permitted(pid)
    # One that has ended and that nobody has waited for is there still, without a program.
    gone = not Path(f"/proc/{pid}").exists() or "process executable name" in said
    if sys.platform == "linux" and gone:
        return refusal.ended(pid)
    if "Failed to find python version" in said or "python interpreter" in said:
        return refusal.not_python(pid, process_name(pid))
    first = said.strip().partition("\n")[0].removeprefix("Error: ")
    return AttachError(f"py-spy cannot read process {pid}: {first or 'no reason given'}")


def process_name(pid: int) -> str:
    """Return what the kernel calls a process; empty where it does not say."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


@dataclass(slots=True)
class StackLine:
    """The stacks of one thread over time.

    Attributes
    ----------
    ident
        `threading.get_ident()`.
    number
        `gettid`, 0 where not known.
    name
        Its name, or empty.
    times_ns
        When its stack changed, increasing.
    stacks
        What it was from then on, innermost first; empty: the thread was not there.
    """

    ident: int
    number: int = 0
    name: str = ""
    times_ns: list[int] = field(default_factory=list)
    stacks: list[tuple[SampledFrame, ...]] = field(default_factory=list)

    def at(self, time_ns: int) -> tuple[SampledFrame, ...] | None:
        """Return the stack at a time; None before the first and after the last."""
        place = bisect_right(self.times_ns, time_ns) - 1
        return self.stacks[place] or None if place >= 0 else None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What py-spy saw.

    Attributes
    ----------
    lines
        One for each thread.
    samples, errors
        Stacks that it read, and looks at the process that failed.
    """

    lines: tuple[StackLine, ...]
    samples: int
    errors: int


class Spy:
    """py-spy at work; it writes what it saw when it is stopped, or when the process ends.

    Parameters
    ----------
    pid, rate
        The process, and the samples a second.
    longest_s
        It ends by itself by then, if nobody is left to stop it.
    path
        Where py-spy may write.
    native
        With native frames; the process is stopped for each sample.
    """

    def __init__(self, pid: int, rate: int, longest_s: float, path: Path, *, native: bool) -> None:
        self._pid, self._path = pid, path
        mode = "--native" if native else "--nonblocking"
        command = [
            *(executable(), "record", "--pid", str(pid), "--rate", str(rate), mode),
            *("--format", "chrometrace", "--idle", "--threads", "--full-filenames"),
            *("--duration", str(ceil(longest_s)), "--output", str(path)),
        ]
        # Ctrl-C is for us: we stop it.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._begun_ns = time.monotonic_ns()

    @property
    def ended(self) -> bool:
        """Whether it has stopped by itself: the process has ended, or cannot be read."""
        return self._process.poll() is not None

    def stop(self) -> Recorded:
        """Stop it and return what it saw.

        Raises
        ------
        AttachError
            It saw nothing.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            said, _ = self._process.communicate(timeout=_DUMP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AttachError("py-spy did not stop, and was killed: try again") from None
        counts = _COUNTS.search(said)
        try:
            events = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            raise failure(self._pid, said) from None
        lines = tuple(stack_lines(events, self._begun_ns))
        samples, errors = map(int, counts.groups()) if counts else (0, 0)
        return Recorded(lines, samples, errors)

    def kill(self) -> None:
        """End it without its answer."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def stack_lines(events: list[dict[str, Any]], begun_ns: int) -> Iterator[StackLine]:
    """Yield the stacks over time of each thread in py-spy's timeline.

    Parameters
    ----------
    events
        Its events: functions begin and end.
    begun_ns
        The time that its times count from.
    """
    known: dict[tuple[str, str, int], SampledFrame] = {}
    found: list[StackLine] = []
    current: dict[int, StackLine] = {}
    open_: dict[int, list[SampledFrame]] = {}
    for event in events:
        ident, kind, name = event["tid"], event["ph"], event["name"]
        stack = open_.setdefault(ident, [])
        at_ns = begun_ns + event["ts"] * 1000
        if kind == "B":
            thread = None if stack else _THREAD.match(name)
            if thread:
                number = int(thread.group(1), 0)
                # A number of Python's is given to another thread once the first has ended.
                if ident not in current or current[ident].number != number:
                    current[ident] = StackLine(ident, number, thread.group(2) or "")
                    found.append(current[ident])
            place = event["args"]
            key = (name, place.get("filename") or "", place.get("line") or 0)
            stack.append(known.get(key) or known.setdefault(key, _frame(*key)))
        elif kind == "E" and stack:
            stack.pop()
        else:
            continue
        line = current.get(ident)
        if line is None:
            continue
        # The outermost frame is the thread itself.
        now = tuple(reversed(stack[1:]))
        if line.times_ns and line.times_ns[-1] == at_ns:
            line.stacks[-1] = now
        else:
            line.times_ns.append(at_ns)
            line.stacks.append(now)
    yield from found


def _frame(function: str, filename: str, line: int) -> SampledFrame:
    """Return a frame: of Python's a source file is known and a line, of others the library."""
    if filename.endswith((".py", ".pyx", ">")) or (line and not filename.endswith(_NATIVE)):
        return SampledFrame(function, filename, line)
    return SampledFrame(function, image=filename or "?")
