"""What a recording says that it did not see, as sentences.

The file is not trusted: whatever is not of the form that `FORMAT.md` gives for `not_seen` is left
out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contention_lab.trace.model import Trace


FUTEX: Final = "futex"
"""The type of locks that are code of the program's own and wait for a word in the kernel."""
UNCONTENDED_UNSEEN: Final = "uncontended acquires of futex locks are not seen"


def not_seen(trace: Trace) -> tuple[str, ...]:
    """Return one sentence for each kind of thing that was there and is not in the trace.

    Parameters
    ----------
    trace
        A trace.

    Returns
    -------
    tuple of str
        `7 times threading.Lock: made before the recording began`, in the file's order.
    """
    notes = trace.meta.get("not_seen")
    said = []
    for note in notes if isinstance(notes, list) else ():
        if not isinstance(note, dict):
            continue
        what, why, count = (note.get(key) for key in ("what", "why", "count"))
        if isinstance(what, str) and isinstance(why, str):
            times = f"{count:,} times " if type(count) is int and count > 1 else ""
            said.append(f"{times}{what}: {why}")
    if _has_futex_locks(trace):
        said.append("uncontended acquires of futex locks: only waits in the kernel are seen")
    if trace.native.without_lines:
        said.append(f"lines of its code: {trace.native.without_lines}")
    return tuple(said)


def _has_futex_locks(trace: Trace) -> bool:
    counted = set(trace.counters["lock"].tolist())
    return any(lock.type == FUTEX and lock.id in counted for lock in trace.locks.values())
