"""Locks of the C library that threads waited for: Python's own, those of extensions, of libraries.

It takes the events of the layer below Python (`Trace.native_waits`). They are apart from the locks
of Python code: no other table counts them, and many are no fault at all, since a thread that is
joined or that sleeps until it is needed waits on such a lock, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.sites import user_frame
from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from contention_lab.trace import Frame, Trace
    from contention_lab.trace.native import NativeFrame, NativeLock
    from contention_lab.trace.records import Records

PYTHONS_OWN: Final = (
    ("PyThread_acquire_lock", "a lock that Python code holds and the recording did not replace"),
    ("_PyCriticalSection", "an object's own lock: one list, dict or object used by many threads"),
    ("_PyMutex_LockSlow", "a lock inside the interpreter"),
    ("PyMutex_Lock", "a lock inside the interpreter"),
    ("_PyParkingLot_Park", "a lock inside the interpreter, or a thread that is joined"),
    ("_PySemaphore_Wait", "a lock inside the interpreter, or a thread that is joined"),
    ("PyEvent_Wait", "an event inside the interpreter: a thread that is joined, or starts"),
    ("_PyImport_AcquireLock", "the import lock"),
)
"""Functions of the interpreter that wait, the more telling first, in words of Python's users."""

FOR_OTHERS: Final = frozenset({NativeKind.COND, NativeKind.BARRIER})
"""Kinds that threads wait at for others to do something: no contention."""


@dataclass(frozen=True, slots=True)
class NativeLockRow:
    """One native lock.

    Attributes
    ----------
    lock
        The lock.
    text
        What it is in words of Python's users, where it is the interpreter's; else its label.
    waits, wait_s, longest_s
        How often, how long together and how long at most threads waited for it, in seconds.
    for_others
        It is waited at for other threads to do something.
    victims
        Places in the program's Python code that waited, with the seconds of each; None for threads
        that ran none.
    holders
        Functions that let go of it while others waited, with how often that was seen.
    """

    lock: NativeLock
    text: str
    waits: int
    wait_s: float
    longest_s: float
    for_others: bool
    victims: tuple[tuple[Frame | None, float], ...]
    holders: tuple[tuple[NativeFrame, int], ...]


def native_locks(trace: Trace) -> tuple[NativeLockRow, ...]:
    """Sum up the waits for each native lock.

    Parameters
    ----------
    trace
        A trace.

    Returns
    -------
    tuple of NativeLockRow
        Those of the longest waits first; empty without the layer below Python.
    """
    by_lock: dict[int, list[Records]] = {}
    for event in trace.native_waits:
        by_lock.setdefault(int(event["lock"]), []).append(event)
    rows = [
        _row(trace, trace.native.locks[lock], events)
        for lock, events in by_lock.items()
        if lock in trace.native.locks
    ]
    return tuple(sorted(rows, key=lambda row: (-row.wait_s, row.lock.id)))


def _row(trace: Trace, lock: NativeLock, events: list[Records]) -> NativeLockRow:
    victims: Counter[Frame | None] = Counter()
    holders: Counter[NativeFrame] = Counter()
    lengths = []
    stacks: set[int] = set()
    for event in events:
        stack = trace.native_stack(int(event["native_stack"]))
        if int(event["flags"]) & NativeWaitFlag.RELEASE:
            holders.update(stack[:1])
            continue
        length_ns = max(0, int(event["end_ns"]) - int(event["start_ns"]))
        lengths.append(length_ns)
        victims[user_frame(trace.stack(int(event["stack"])))] += length_ns
        stacks.add(int(event["native_stack"]))
    return NativeLockRow(
        lock=lock,
        text=_text(trace, lock, stacks),
        waits=len(lengths),
        wait_s=sum(lengths) / 1e9,
        longest_s=max(lengths, default=0) / 1e9,
        for_others=lock.kind in FOR_OTHERS,
        victims=tuple((site, ns / 1e9) for site, ns in victims.most_common()),
        holders=tuple(holders.most_common()),
    )


def _text(trace: Trace, lock: NativeLock, stacks: set[int]) -> str:
    """Name the interpreter's locks after what takes them: any function on the way there tells."""
    file = PurePosixPath(lock.image).name
    if not file.startswith(("libpython", "python")):
        return lock.label
    functions = {lock.symbol} | {
        frame.symbol
        for stack in stacks
        for frame in trace.native_stack(stack)
        if not frame.is_nearest
    }
    for function, text in PYTHONS_OWN:
        if any(known.startswith(function) for known in functions):
            return text
    return lock.label
