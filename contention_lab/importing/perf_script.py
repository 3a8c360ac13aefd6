"""The text of `perf script`: a line for each sample, and its frames below it, innermost first.

What a line holds depends on what `perf script` was asked for (`-F`): of the name, the numbers of
process and thread, the core, the time, the period and the event any may be missing. Names may hold
spaces and digits, so lines are read from their end. A stack may stand beside its line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from contention_lab.importing.frame_text import UNKNOWN, native_frame
from contention_lab.importing.stack_file import (
    StackFile,
    StackFileError,
    StackSample,
    StackThread,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contention_lab.sampling.frame import SampledFrame

SOURCE: Final = "perf script"
NANOSECONDS: Final = frozenset({"cpu-clock", "task-clock", "offcpu-time"})
"""Events whose period is a time."""

_FRAME: Final = re.compile(
    r"\s+(?:(?P<address>[0-9a-f]+)(?:\s|$)\s*)"
    r"(?P<symbol>.*?)(?:\+0x[0-9a-f]+)?(?:\s+\((?P<image>[^()]*(?:\(deleted\))?)\))?\s*$"
)
_SOURCE_LINE: Final = re.compile(r"  \S")
_HEAD: Final = re.compile(
    r"\s*(?P<name>\S.*?)??(?:\s*(?<!\S)(?:(?P<pid>-?\d+)/)?(?P<tid>-?\d+))?"
    r"(?:\s+\[(?P<core>\d+)\])?"
    r"(?:\s*(?<!\S)(?P<time>\d+\.\d+):)?"
    r"(?:\s+(?P<period>\d+))?"
    r"(?:\s+(?P<event>[A-Za-z_][^\s]*?):(?=\s|$)(?P<rest>.*))?\s*$"
)
_RECORD: Final = re.compile(r"\bPERF_RECORD_(?P<kind>\w+)(?P<rest>.*)")
_ADDRESS: Final = re.compile(r"\s+[0-9a-f]{4,}\s")
_COMMENT: Final = "#"


def read(lines: Iterable[str], name: str) -> StackFile:
    """Return what the text says.

    Parameters
    ----------
    lines
        Of the text.
    name
        The file's, for complaints.

    Raises
    ------
    StackFileError
        A line is neither a sample nor a frame; the complaint says which.
    """
    reader = _Reader(name)
    reader.read(lines)
    unit = "samples"
    if any(sample.weight != 1.0 for sample in reader.samples):
        events = {sample.event for sample in reader.samples}
        unit = "ns" if events <= NANOSECONDS else "events"
    return StackFile(SOURCE, tuple(reader.samples), unit, reader.lost, reader.machine)


def looks_so(lines: Iterable[str]) -> bool:
    """Tell whether a text begins as one of `perf script` does."""
    head = ""
    for line in lines:
        if line.startswith(("# ========", "# captured on")):
            return True
        if line.startswith(_COMMENT) or not line.strip():
            continue
        if line.startswith(("\t", "    ")) and _FRAME.match(line):
            return True
        if _RECORD.search(line):
            return True
        if head:
            break
        head = line
    found = _head_of(head) if head else None
    return found is not None and (found["time"] is not None or found["event"] is not None)


class _Reader:
    """The samples of a text, line by line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.samples: list[StackSample] = []
        self.lost = 0
        self.machine: dict[str, Any] = {}
        self._threads: dict[tuple[int, int, str], StackThread] = {}
        self._frames: dict[str, SampledFrame | None] = {}
        self._stacks: dict[tuple[SampledFrame, ...], tuple[SampledFrame, ...]] = {}
        self._head: re.Match[str] | None = None
        self._open = False
        self._stack: list[SampledFrame] = []

    def read(self, lines: Iterable[str]) -> None:
        """Read them all."""
        for number, line in enumerate(lines, 1):
            text = line.rstrip("\r\n")
            if not text.strip():
                self._close()
            elif text.startswith(_COMMENT):
                self._note(text)
            elif not self._is_frame(text):
                self._begin(text, number)
        self._close()

    def _is_frame(self, text: str) -> bool:
        """Take a line as a frame of the sample that is open, if it is one."""
        if not text[0].isspace():
            return False
        if self._stack and _SOURCE_LINE.match(text) and _head_of(text) is None:
            return True
        if text not in self._frames:
            self._frames[text] = _frame(text)
        frame = self._frames[text]
        if frame is None or (not self._open and not text.startswith("\t")):
            return False
        self._open = True
        self._stack.append(frame)
        return True

    def _begin(self, text: str, number: int) -> None:
        self._close()
        record = _RECORD.search(text)
        if record:
            lost = re.search(r"lost\D*(\d+)", record["rest"]) if "LOST" in record["kind"] else None
            self.lost += int(lost[1]) if lost else 0
            return
        head = _head_of(text)
        if head is None:
            raise StackFileError(
                f"{self.name}:{number}: neither a sample nor a frame of `perf script`: "
                f"{_shortened(text)}"
            )
        self._head, self._open = head, True
        frame = _frame(head["rest"] or "")
        if frame is not None and frame.function != UNKNOWN and _ADDRESS.match(head["rest"]):
            self._stack.append(frame)

    def _close(self) -> None:
        """Add the sample that is open."""
        if not self._open:
            return
        stack = tuple(self._stack)
        stack = self._stacks.setdefault(stack, stack)
        self.samples.append(_sample(self._head, stack, self._threads))
        self._head, self._open, self._stack = None, False, []

    def _note(self, text: str) -> None:
        """Keep what a header says of the machine."""
        key, _, value = text.strip("# ").partition(" : ")
        key, value = key.strip(), value.strip()
        names = {"os release": "release", "arch": "processor", "hostname": ""}
        if key == "nrcpus online" and value.isdigit():
            self.machine |= {"cores": int(value), "system": "Linux"}
        elif names.get(key):
            self.machine[names[key]] = value


def _sample(
    head: re.Match[str] | None,
    stack: tuple[SampledFrame, ...],
    threads: dict[tuple[int, int, str], StackThread],
) -> StackSample:
    if head is None:
        return StackSample(None, StackThread(), stack, 1.0)
    name, tid = head["name"] or "", int(head["tid"] or 0)
    key = int(head["pid"] or 0), tid, name
    thread = threads.setdefault(key, StackThread(*key))
    seconds, _, part = (head["time"] or "").partition(".")
    time_ns = int(seconds) * 10**9 + int(part[:9].ljust(9, "0")) if seconds else None
    weight = float(head["period"] or 1)
    return StackSample(time_ns, thread, stack, weight or 1.0, _event(head["event"] or ""))


def _event(text: str) -> str:
    """Return an event without what else it was counted by: `cycles:ppp`, `cpu-clock:u`."""
    return re.sub(r":[ukhGHpPSDWe]+$", "", text)


def _frame(text: str) -> SampledFrame | None:
    found = _FRAME.match(text)
    if found is None:
        return None
    image = found["image"] or ""
    symbol = found["symbol"].strip()
    if image == "inlined":
        image = ""
    elif not symbol and image == UNKNOWN:
        symbol = UNKNOWN
    return native_frame(symbol or UNKNOWN, "" if image == UNKNOWN else image)


def _head_of(text: str) -> re.Match[str] | None:
    """Return the parts of a line that begins a sample; None if it is no such line."""
    found = _HEAD.match(text)
    if found is None or not any(found[part] for part in ("tid", "time", "event")):
        return None
    return found


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
