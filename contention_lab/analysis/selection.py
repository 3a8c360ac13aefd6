"""A trace cut down to some locks, threads or stacks, or with the locks of a site as one.

The result is a trace like any other, so every table can be made of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.trace import ChunkKind, WaitKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

_LARGEST: Final = ("max_wait_ns", "max_hold_ns")
_KEYS: Final = ("lock", "thread")


def selected(trace: Trace, *, lock: str = "", thread: str = "", stack: str = "") -> Trace:
    """Return the part of a trace that is about some of its locks, threads and stacks.

    Parameters
    ----------
    trace
        A trace.
    lock
        Text in the lock's label, type or place of creation; case does not matter. Empty: any.
    thread
        Text in the label of the thread that waits or holds. Empty: any.
    stack
        Text in a function or file of the waiter's, or of the releasing holder's, stack. Counters
        have no stacks: with this, only what was recorded one by one is left. Empty: any.

    Returns
    -------
    Trace
        With all of its tables, and fewer records. Those of the GIL, which is no lock of the
        program, are chosen by thread and stack only.
    """
    trace = replace(trace, layer_chunks=_of_the_gil(trace, thread, stack))
    waits, holds, counters = trace.waits, trace.holds, trace.counters
    if lock:
        chosen = [one.id for one in trace.locks.values() if _in(lock, *_lock_texts(trace, one.id))]
        waits, holds, counters = (
            part[np.isin(part["lock"], chosen)] for part in (waits, holds, counters)
        )
    if thread:
        chosen = [one.id for one in trace.threads.values() if _in(thread, one.label)]
        waits, holds, counters = (
            part[np.isin(part["thread"], chosen)] for part in (waits, holds, counters)
        )
    if stack:
        chosen = _stacks(trace, stack)
        waits, holds = (part[np.isin(part["stack"], chosen)] for part in (waits, holds))
        counters = counters[:0]
    return _with(trace, waits, holds, counters)


def _of_the_gil(trace: Trace, thread: str, stack: str) -> Mapping[ChunkKind, Sequence[Records]]:
    """Return the records of the layer below Python, those of the GIL cut down."""
    chunks = dict(trace.layer_chunks)
    parts = {
        ChunkKind.GIL_WAITS: trace.gil_waits,
        ChunkKind.GIL_HOLDS: trace.gil_holds,
        ChunkKind.GIL_TOTALS: trace.gil_totals,
    }
    if thread:
        ids = [one.id for one in trace.threads.values() if _in(thread, one.label)]
        parts = {kind: part[np.isin(part["thread"], ids)] for kind, part in parts.items()}
    if stack:
        chosen = _stacks(trace, stack)
        parts[ChunkKind.GIL_TOTALS] = parts[ChunkKind.GIL_TOTALS][:0]
        for kind in (ChunkKind.GIL_WAITS, ChunkKind.GIL_HOLDS):
            parts[kind] = parts[kind][np.isin(parts[kind]["stack"], chosen)]
    return chunks | {kind: (part,) for kind, part in parts.items() if kind in chunks}


def _stacks(trace: Trace, text: str) -> list[int]:
    return [
        number
        for number in trace.stacks
        if any(_in(text, frame.function, frame.filename) for frame in trace.stack(number))
    ]


def by_site(trace: Trace) -> Trace:
    """Return the trace with all locks of one type and name that were made at one place as one.

    It is the first of them; `Lock.instance` of it is how many were used. Locks of which neither
    name nor place is known stay apart.
    """
    counters, waits, holds = trace.counters, trace.waits, trace.holds
    contended = waits["lock"][waits["kind"] == WaitKind.CONTENTION]
    used = set(np.unique(np.concatenate([counters["lock"], contended, holds["lock"]])).tolist())
    first: dict[tuple[object, ...], int] = {}
    instances: dict[int, int] = {}
    stands_for = np.arange(max(used, default=0) + 1, dtype=np.uint32)
    for number in sorted(used):
        one = trace.lock(number)
        stands_for[number] = first.setdefault((one.type, one.label, one.site), number)
        instances[int(stands_for[number])] = instances.get(int(stands_for[number]), 0) + 1
    locks = dict(trace.locks)
    for number, count in instances.items():
        locks[number] = replace(trace.lock(number), instance=count)
    return _with(
        replace(trace, locks=locks),
        _renamed(waits, stands_for),
        _renamed(holds, stands_for),
        _added_up(_renamed(counters, stands_for)),
    )


def _renamed(records: Records, stands_for: npt.NDArray[np.uint32]) -> Records:
    known = records["lock"] < len(stands_for)
    changed = records.copy()
    changed["lock"][known] = stands_for[records["lock"][known]]
    return changed


def _added_up(counters: Records) -> Records:
    """Return one record per lock and thread."""
    pair = counters["lock"].astype(np.uint64) << np.uint64(32) | counters["thread"]
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    sums = counters[first].copy()
    for name in counters.dtype.names or ():
        if name in _KEYS:
            continue
        column = np.zeros_like(sums[name])
        (np.maximum if name in _LARGEST else np.add).at(column, which, counters[name])
        sums[name] = column
    return sums


def _with(trace: Trace, waits: Records, holds: Records, counters: Records) -> Trace:
    return replace(
        trace, wait_chunks=(waits,), hold_chunks=((0, holds),), counter_chunks=(counters,)
    )


def _lock_texts(trace: Trace, number: int) -> tuple[str, str, str]:
    one = trace.lock(number)
    return one.label, one.type, one.site.place if one.site else ""


def _in(text: str, *places: str) -> bool:
    return any(text.casefold() in place.casefold() for place in places)
