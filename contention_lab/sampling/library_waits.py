"""Which functions of the standard library wait, and what for.

Known by the file's last folder and name, and the function's last name: so a profiler may shorten
paths and leave out classes. A table for `classes.py`; it decides nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.sites import is_user_code

if TYPE_CHECKING:
    from contention_lab.sampling.frame import SampledFrame

_COORDINATION: Final = {
    "threading.py": {"wait", "wait_for", "_wait", "join", "_wait_for_tstate_lock", "_shutdown"},
    "queue.py": {"get", "put", "join"},
    "futures/_base.py": {"result", "exception", "wait", "as_completed", "result_iterator"},
    "futures/thread.py": {"_worker", "shutdown"},
    "futures/process.py": {"wait_result_broken_or_wakeup", "shutdown"},
    "multiprocessing/queues.py": {"get", "_feed", "join"},
    "multiprocessing/synchronize.py": {"wait", "wait_for"},
    "multiprocessing/pool.py": {"wait", "get", "next", "join", "_maintain_pool", "worker"},
    "multiprocessing/process.py": {"join"},
    "multiprocessing/popen_fork.py": {"wait", "poll"},
}
"""Functions that wait for others to do something."""

_PERMITS: Final = {
    "threading.py": {"Semaphore.acquire", "BoundedSemaphore.acquire"},
    "multiprocessing/queues.py": {"Queue.put"},
}
"""Functions that wait for one of several permits, which is waiting for a lock."""

_ENTRANCES: Final = {
    "threading.py": {"__enter__", "_acquire_restore"},
    "multiprocessing/synchronize.py": {"__enter__"},
    "logging/__init__.py": {"acquire", "_acquireLock"},
}
"""Functions that only take a lock for their caller."""

ACQUIRING: Final = re.compile(r"^\s*(async\s+)?with\b|\.(acquire|lock)\(|_acquire_restore\(")
"""Source of a line that takes a lock, if it is a C function that waits there."""

_WITHOUT_BLOCKING: Final = re.compile(
    r"\.acquire\(\s*(False\b|0\s*[,)]|blocking\s*=\s*(False|0)\b)|\.try_?(acquire|lock)\("
    r"|\.locked\(\)|compare_(and_)?(exchange|swap|set)"
)

AWAITING: Final = re.compile(r"\.(get|put|join|wait|wait_for|result|exception)\(")
"""Source of a line that waits for others to do something, if it is a C function that waits."""

SPINNERS: Final = re.compile(r"^(try_)?(acquire|lock)$|^__enter__$|(^|_)spin(_|$)|spin_?lock")
"""Names of Python functions that, if they are busy, are so on behalf of a lock's waiter."""


def coordinates(frame: SampledFrame) -> bool:
    """Tell whether a frame of Python code waits for others to do something."""
    return frame.name in _COORDINATION.get(_short(frame, _COORDINATION), ())


def awaits_permit(frame: SampledFrame) -> bool:
    """Tell whether a frame of Python code waits for one of several permits."""
    return frame.function in _PERMITS.get(_short(frame, _PERMITS), ())


def lets_go(frame: SampledFrame) -> bool:
    """Tell whether a frame of Python code waits on a condition, and so has let go of its lock."""
    return frame.name == "wait" and _short(frame, _COORDINATION) in (
        "threading.py",
        "multiprocessing/synchronize.py",
    )


def is_entrance(frame: SampledFrame) -> bool:
    """Tell whether a frame of Python code only takes a lock for its caller."""
    return frame.name in _ENTRANCES.get(_short(frame, _ENTRANCES), ())


def tries_without_blocking(text: str) -> bool:
    """Tell whether a line of source asks for a lock and goes on if it is taken."""
    return _WITHOUT_BLOCKING.search(text) is not None


def _short(frame: SampledFrame, table: dict[str, set[str]]) -> str:
    """Return the key of a table that a frame's file may stand under."""
    parts = frame.file.replace("\\", "/").rsplit("/", 2)
    if len(parts) == 3 and is_user_code(frame.file):
        return ""
    return parts[-1] if parts[-1] in table else "/".join(parts[-2:])
