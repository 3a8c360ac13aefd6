"""Collapsed stacks: a line for each, frames from the outermost on, and how often it was seen.

`main;work;spin_lock 123`, as `stackcollapse-perf.pl`, inferno, py-spy (`-f raw`) and many others
write it. There are no times, so nothing says what happened together. Frames at the front that name
a process or a thread are taken for that.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from contention_lab.importing.frame_text import collapsed_frame
from contention_lab.importing.stack_file import (
    StackFile,
    StackFileError,
    StackSample,
    StackThread,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE: Final = "collapsed stacks"

_LINE: Final = re.compile(r"(?P<stack>.*?)\s+(?P<weight>[-+]?[\d.]\S*|nan|inf)$", re.I)
_TWO: Final = re.compile(r".*\s\d+(\.\d+)?$")
_THREADS: Final = (
    re.compile(r"thread \((?P<tid>0[xX][0-9a-fA-F]+|\d+)\)(: (?P<name>.*))?$"),  # py-spy
    re.compile(r"\[(?P<name>.*?),? tid=(?P<tid>\d+)\]$"),  # async-profiler
    re.compile(r"(?P<name>.*)-(?P<pid>\d+|\?)/(?P<tid>\d+)$"),  # stackcollapse-perf.pl --tid
    re.compile(r"T(hread )?(?P<tid>\d+)(:(?P<name>\d*))?$"),  # austin
    re.compile(r"(?P<name>(Main|Dummy)Thread|Thread-\d+( \(.*\))?|ThreadPoolExecutor-\d+_\d+)$"),
)
_PROCESSES: Final = (
    re.compile(r"process (?P<pid>\d+)(:.*)?$"),  # py-spy
    re.compile(r"P(?P<pid>\d+)$"),  # austin
    re.compile(r"(?P<name>.*)-(?P<pid>\d+)$"),  # stackcollapse-perf.pl --pid
)


def read(lines: Iterable[str], name: str) -> StackFile:
    """Return what the text says; empty lines and lines that begin with `#` say nothing.

    Parameters
    ----------
    lines
        Of the text.
    name
        The file's, for complaints.

    Raises
    ------
    StackFileError
        A line is no stack with a number of its own; the complaint says which.
    """
    samples = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                samples.append(_sample(text))
            except ValueError as error:
                raise StackFileError(f"{name}:{number}: {error}") from None
    samples = [sample for sample in samples if sample.weight]
    return StackFile(SOURCE, tuple(samples), "samples")


def looks_so(line: str) -> bool:
    """Tell whether a line is a stack with a number."""
    try:
        _sample(line.strip())
    except ValueError:
        return False
    return True


def _sample(text: str) -> StackSample:
    found = _LINE.match(text)
    weight = _number(found["weight"]) if found else None
    if found is None or weight is None or not found["stack"].strip():
        shown = text if len(text) <= 60 else f"...{text[-57:]}"
        raise ValueError(f"no stack with a number at the end, as in `main;work 12`: {shown!r}")
    if _TWO.match(found["stack"]):
        raise ValueError("two numbers: a difference of two profiles; import one of them")
    if weight < 0.0:
        raise ValueError(f"{found['weight']} samples: a number of samples is 0 or more")
    words = [word.strip() for word in found["stack"].split(";")]
    thread, first = _thread(words)
    frames = tuple(collapsed_frame(word) for word in reversed(words[first:]) if word)
    return StackSample(None, thread, frames, weight)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _thread(words: list[str]) -> tuple[StackThread, int]:
    """Return whose stack it is, and how many of its frames say so."""
    process, first = 0, 0
    for pattern in _PROCESSES:
        found = pattern.match(words[0])
        if found and len(words) > 1:
            process, first = int(found["pid"]), 1
            break
    for pattern in _THREADS:
        found = pattern.match(words[first]) if len(words) > first + 1 else None
        if found:
            parts = found.groupdict()
            own = parts.get("pid") or ""
            return (
                StackThread(
                    int(own) if own.isdigit() else process,
                    int(parts.get("tid") or "0", 0),
                    (parts.get("name") or "").strip(),
                ),
                first + 1,
            )
    return StackThread(process), first
