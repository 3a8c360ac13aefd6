"""What to call the kind of a lock, by how it is made or by who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.sampling.frame import SampledFrame

_OF_THREADING: Final = frozenset(
    {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"}
)
_OF_QUEUE: Final = frozenset({"Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"})
_BY_FUNCTION: Final = (
    ("queue.py", "", "queue.Queue"),
    ("threading.py", "Barrier", "threading.Barrier"),
    ("threading.py", "Event", "threading.Event"),
    ("threading.py", "Thread", "threading.Thread"),
    ("threading.py", "_shutdown", "threading.Thread"),
    ("_base.py", "", "Future"),
    ("futures/thread.py", "", "ThreadPoolExecutor"),
    ("threading.py", "Condition", "threading.Condition"),
)


def lock_type(call: str) -> str:
    """Return the type of a lock by what is called to make it (`threading.Lock`, `RLock`)."""
    name = call.rpartition(".")[2]
    if name in _OF_THREADING or name == "allocate_lock":
        return f"threading.{'Lock' if name == 'allocate_lock' else name}"
    return f"queue.{name}" if name in _OF_QUEUE else name


def coordination_type(frames: Sequence[SampledFrame]) -> str:
    """Return the type of what a thread that coordinates waits for: the outermost that is known."""
    found = ""
    for frame in frames:
        if frame.is_native:
            continue
        match = _type(frame)
        if not match:
            break
        found = match
    return found or "queue.SimpleQueue" if frames else "condition"


def _type(frame: SampledFrame) -> str:
    path = frame.file.replace("\\", "/")
    for file, start, kind in _BY_FUNCTION:
        if path.endswith(file) and frame.function.startswith(start):
            return kind
    return ""
