"""Frames as other profilers print them, taken apart.

Python frames are told by what profilers write for them: `name (file.py:12)`, or `py::name:file` of
perf with Python's own support. Everything else is native code.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from contention_lab.sampling.frame import SampledFrame

UNKNOWN: Final = "[unknown]"

_PYTHON: Final = re.compile(r"(?P<name>.+) \((?P<file>[^()]*?(?:\.pyw?|>|\.pyx)):(?P<line>\d+)\)$")
_TRAMPOLINE: Final = re.compile(r"py::(?P<name>.*?):(?P<file>[^:]*\.pyw?|<[^>]*>|[^:]*/[^:]*)$")
_IN_IMAGE: Final = re.compile(
    r"(?P<name>.+) \((?P<image>[^()]+\.(?:so[\w.]*|dylib|dll|exe|pyd)|\[[\w.\- ]+\])\)$"
)
_MARK: Final = re.compile(r"_\[[jikw]\]$")
"""What collapsing scripts mark inlined, kernel and compiled frames with."""


@lru_cache(maxsize=1 << 16)
def collapsed_frame(text: str) -> SampledFrame:
    """Return a frame of a collapsed stack.

    Parameters
    ----------
    text
        `spin_lock`, `worker (app.py:12)`, `sqlite3_step (libsqlite3.so.0)`, `do_syscall_64_[k]`.
    """
    found = _PYTHON.match(text)
    if found:
        return SampledFrame(found["name"], found["file"], int(found["line"]))
    found = _IN_IMAGE.match(text)
    if found:
        return SampledFrame(found["name"], image=found["image"])
    mark = _MARK.search(text)
    name = text[: mark.start()] if mark else text
    image = "[kernel]" if mark and mark.group() == "_[k]" else ""
    return native_frame(name, image)


def native_frame(symbol: str, image: str) -> SampledFrame:
    """Return a frame of a symbol, which may be of Python code that perf was told of."""
    found = _TRAMPOLINE.match(symbol)
    if found:
        return SampledFrame(found["name"], found["file"])
    return SampledFrame(symbol or UNKNOWN, image=image)
