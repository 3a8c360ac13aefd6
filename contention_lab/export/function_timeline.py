"""Functions and locks on one timeline: what viztracer recorded, with our lanes under its own.

Both clocks are the system's monotonic one. The functions' events are copied as they are, so it is
ours that are moved to that clock. A thread's waits and holds have lanes of their own, under that of
its functions: where the two recorders end a span some nanoseconds apart, a viewer would draw one
that lies within another wrongly.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from contention_lab.export import perfetto
from contention_lab.export.export_format import ExportError
from contention_lab.trace import TraceError, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contention_lab.trace import Trace

_HEAD: Final = b'{"traceEvents":['
_TAIL: Final = re.compile(rb'\], "viztracer_metadata": \{"overflow":(true|false)[^\]]*$')
_BETWEEN: Final = b',{"p'
"""What a text within an event cannot hold: there, a quote has a backslash before it."""
_OWN: Final = re.compile(rb"[\\/]contention_lab[\\/]capture[\\/][^\"]*\.py:\d+\)\"")
_THREAD: Final = re.compile(rb'"tid":(\d+),')
_TIMES: Final = re.compile(rb'"ts":([\d.]+),.*?"dur":([\d.]+)')
_BLOCK: Final = 1 << 20


@dataclass(slots=True)
class FunctionCalls:
    """What was copied.

    Attributes
    ----------
    count
        Calls of functions.
    overflow
        The buffer was too small: the first calls are missing.
    first_us
        When the first call that is there ended, by the monotonic clock; 0 without one.
    """

    count: int = 0
    overflow: bool = False
    first_us: float = 0.0


def write(trace: Trace, functions: BinaryIO, sink: BinaryIO, late_ns: int = 0) -> FunctionCalls:
    """Write both.

    Parameters
    ----------
    trace
        The locks.
    functions
        What viztracer's recorder wrote of the same process.
    sink
        Where to.
    late_ns
        By how much the times of the functions are late.

    Raises
    ------
    ExportError
        The functions' file is cut or not viztracer's.
    """
    calls = FunctionCalls()
    perfetto.write_events(
        trace,
        sink,
        base_ns=trace.start_mono_ns + late_ns,
        others=lambda lanes: _events(functions, lanes, calls),
    )
    missing = calls.first_us * 1e3 - trace.start_mono_ns
    about = {"functions": calls.count}
    if calls.overflow:
        about["functions missing before ns"] = max(0, round(missing))
    perfetto.write_end(trace, sink, about)
    return calls


def _events(functions: BinaryIO, lanes: Mapping[int, int], calls: FunctionCalls) -> Iterator[bytes]:
    """Yield the events of functions as JSON, some at a time, joined by commas."""
    if functions.read(len(_HEAD)) != _HEAD:
        raise ExportError("not a file of viztracer's recorder")
    numbers = {b"%d" % native: b"%d" % lane for native, lane in lanes.items()}
    left = b""
    while block := functions.read(_BLOCK):
        left += block
        parts = left.split(_BETWEEN)
        left = parts.pop()
        yield from _copied(parts, numbers, calls)
        left = left if not parts else _BETWEEN[1:] + left
    end = _TAIL.search(left)
    if end is None:
        raise ExportError("viztracer's file is cut; is the disk full?")
    calls.overflow = end[1] == b"true"
    yield from _copied([left[: end.start()]], numbers, calls)


def _copied(
    parts: list[bytes], numbers: Mapping[bytes, bytes], calls: FunctionCalls
) -> Iterator[bytes]:
    def in_its_lane(found: re.Match[bytes]) -> bytes:
        return b'"tid":' + numbers.get(found[1], found[1]) + b","

    kept = []
    for part in parts:
        event = part if part.startswith(b'{"p') else _BETWEEN[1:] + part
        if b'"ph":"X"' not in event:
            if _names_thread(event, numbers):
                kept.append(event)
            continue
        if not calls.count:
            found = _TIMES.search(event)
            calls.first_us = float(found[1]) + float(found[2]) if found else 0.0
        if not _OWN.search(event):
            kept.append(event)
        calls.count += 1
    if kept:
        yield _THREAD.sub(in_its_lane, b",\n".join(kept))


def _names_thread(event: bytes, numbers: Mapping[bytes, bytes]) -> bool:
    """Tell whether an event names a thread that we have no name for."""
    found = _THREAD.search(event)
    names = b'"name":"thread_name"' in event and b'"name":""' not in event
    return names and found is not None and found[1] not in numbers


def main(words: Sequence[str]) -> int:
    """Join two files, for a recorded program; print in one line what became of it.

    Parameters
    ----------
    words
        The trace, the functions, the file to write, and by how many nanoseconds the times of the
        functions are late. The second is removed.
    """
    trace_path, raw, target = map(Path, words[:3])
    partial = target.with_name(f"{target.name}.new")
    try:
        trace = load(trace_path)
        with raw.open("rb") as functions, partial.open("wb") as sink:
            calls = write(trace, functions, sink, int(words[3]))
        partial.replace(target)
    except (TraceError, ExportError, OSError) as error:
        partial.unlink(missing_ok=True)
        print(getattr(error, "strerror", None) or error)
        return 1
    raw.unlink(missing_ok=True)
    missing = ""
    if calls.overflow:
        since_s = max(0.0, calls.first_us / 1e6 - trace.start_mono_ns / 1e9)
        missing = f", none that ended before {since_s:.3g} s: --function-entries keeps more"
    print(f"{calls.count:,} function calls{missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
