"""The locks that several processes share, as one trace.

Each process has a trace of its own; a lock of `multiprocessing` has the same name in all of them.
Times are brought together by the system's clock, which is one for all processes of a machine.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.trace import Trace
from contention_lab.trace.variables import name_locks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contention_lab.trace import Frame, Lock, Records, Thread

SHARED: Final = "multiprocessing."
"""What the types of locks begin with that several processes may share."""

_TOGETHER: Final = {"wait_chunks", "hold_chunks", "counter_chunks", "state_chunks"}
_NOT_SHARED: Final[dict[str, Any]] = {
    field.name: field.default if field.default is not MISSING else {}
    for field in fields(Trace)
    if field.name.endswith("_chunks") and field.name not in _TOGETHER
}
"""What belongs to one process."""

_SUMS: Final = ("process_cpu_ns", "self_ns", "writer_cpu_ns", "dropped_waits", "dropped_holds")
_FRAMES: Final = ("holder_site", "site", "held_site")
_STACKS: Final = ("stack", "holder_stack", "awaited_stack")
_THREADS: Final = ("thread", "holder", "release_thread")


def across_processes(traces: Sequence[Trace]) -> Trace | None:
    """Return what happened to the locks that are used by more than one of several processes.

    Parameters
    ----------
    traces
        Traces of processes of one machine.

    Returns
    -------
    Trace or None
        Their locks, threads, waits, holds and counters, with all times since the start of the first
        recording. None if no lock is in two of them. What belongs to one process, such as its GIL,
        is left out.
    """
    shared = _shared_names(traces)
    if not shared:
        return None
    first = min(traces, key=lambda trace: trace.start_mono_ns)
    parts = []
    offset = _Offset()
    numbers: dict[str, int] = {}
    for trace in traces:
        if any(lock.name in shared for lock in _process_locks(trace)):
            parts.append(
                _Part(trace, offset, trace.start_mono_ns - first.start_mono_ns, shared, numbers)
            )
            offset = offset.after(trace)
    locks: dict[int, Lock] = {}
    for part in parts:
        for number, lock in part.locks.items():
            if number not in locks or (locks[number].site is None and lock.site is not None):
                locks[number] = lock
    whole = parts[0].trace
    return replace(
        replace(whole, **_NOT_SHARED),
        path=f"{len(parts)} processes together",
        start_unix_ns=first.start_unix_ns,
        start_mono_ns=first.start_mono_ns,
        duration_ns=max(part.shift_ns + part.trace.duration_ns for part in parts),
        locks=name_locks(_labelled(locks), first.start_unix_ns, whole.meta.get("program")),
        threads={key: value for part in parts for key, value in part.threads().items()},
        frames={key: value for part in parts for key, value in part.frames().items()},
        stacks={key: value for part in parts for key, value in part.stacks().items()},
        truncated_stacks=frozenset(
            stack + part.offset.stack for part in parts for stack in part.trace.truncated_stacks
        ),
        status=_status(part.trace for part in parts),
        complete=all(part.trace.complete for part in parts),
        problems=tuple(problem for part in parts for problem in part.trace.problems),
        meta={**whole.meta, "processes": len(parts)},
        wait_chunks=tuple(part.records(part.trace.waits) for part in parts),
        hold_chunks=tuple((0, part.records(part.trace.holds)) for part in parts),
        counter_chunks=tuple(part.records(part.trace.counters) for part in parts),
        state_chunks=tuple(part.moved(part.trace.states) for part in parts),
    )


def with_sites_of_makers(traces: Iterable[Trace]) -> list[Trace]:
    """Return traces in which a lock that came from another process says where that made it.

    Parameters
    ----------
    traces
        Traces of processes of one machine.
    """
    traces = list(traces)
    made = {
        lock.name: lock
        for trace in traces
        for lock in _process_locks(trace)
        if lock.site is not None
    }
    return [_with_sites(trace, made) for trace in traces]


def _with_sites(trace: Trace, made: Mapping[str, Lock]) -> Trace:
    told = {
        lock.id: replace(
            lock,
            site=made[lock.name].site,
            call=made[lock.name].call,
            variable=made[lock.name].variable,
        )
        for lock in _process_locks(trace)
        if lock.site is None and lock.name in made
    }
    return replace(trace, locks={**trace.locks, **told}) if told else trace


def of_one_run(traces: Sequence[Trace]) -> tuple[list[Trace], list[Trace]]:
    """Tell the processes that ran together with the first one from those of other times.

    A folder may hold traces of an earlier run of the same program.

    Parameters
    ----------
    traces
        At least one.

    Returns
    -------
    together
        The first, and all whose time overlaps it, or that of one that does, and so on.
    others
        The rest.
    """
    together, others = [traces[0]], list(traces[1:])
    start, end = _time_of(traces[0])
    while near := [trace for trace in others if _meets(trace, start, end)]:
        together += near
        others = [trace for trace in others if not _meets(trace, start, end)]
        start = min(_time_of(trace)[0] for trace in together)
        end = max(_time_of(trace)[1] for trace in together)
    return together, others


def _time_of(trace: Trace) -> tuple[int, int]:
    return trace.start_unix_ns, trace.start_unix_ns + trace.duration_ns


def _meets(trace: Trace, start: int, end: int) -> bool:
    begin, finish = _time_of(trace)
    return begin <= end and finish >= start


@dataclass(frozen=True, slots=True)
class _Offset:
    """What is added to the ids of one trace to tell them from those of the others."""

    lock: int = 0
    thread: int = 0
    frame: int = 0
    stack: int = 0

    def after(self, trace: Trace) -> _Offset:
        return _Offset(
            self.lock + max(trace.locks, default=0),
            self.thread + max(trace.threads, default=0),
            self.frame + max(trace.frames, default=0),
            self.stack + max(trace.stacks, default=0),
        )


class _Part:
    """The shared locks of one trace, with ids and times of the whole."""

    def __init__(
        self,
        trace: Trace,
        offset: _Offset,
        shift_ns: int,
        shared: Iterable[str],
        numbers: dict[str, int],
    ) -> None:
        self.trace, self.offset, self.shift_ns = trace, offset, shift_ns
        self._number_of = {
            lock.id: numbers.setdefault(lock.name, lock.id + offset.lock)
            for lock in _process_locks(trace)
            if lock.name in shared
        }
        self.locks = {
            number: replace(trace.locks[lock], id=number, parent=0)
            for lock, number in self._number_of.items()
        }

    def threads(self) -> dict[int, Thread]:
        shift_ns, pid = self.shift_ns, self.trace.pid
        return {
            thread.id + self.offset.thread: replace(
                thread,
                id=thread.id + self.offset.thread,
                name=f"{thread.label} of process {pid}",
                start_ns=thread.start_ns + shift_ns,
                end_ns=(thread.end_ns or self.trace.duration_ns) + shift_ns,
            )
            for thread in self.trace.threads.values()
        }

    def frames(self) -> dict[int, Frame]:
        return {key + self.offset.frame: frame for key, frame in self.trace.frames.items()}

    def stacks(self) -> dict[int, tuple[int, ...]]:
        return {
            key + self.offset.stack: tuple(frame + self.offset.frame for frame in frames)
            for key, frames in self.trace.stacks.items()
        }

    def records(self, records: Records) -> Records:
        """Return the records about shared locks."""
        mine = self.moved(records[np.isin(records["lock"], list(self._number_of))])
        known = np.array(sorted(self._number_of), dtype=np.int64)
        numbers = np.array([self._number_of[lock] for lock in known.tolist()], dtype=np.uint32)
        mine["lock"] = numbers[np.searchsorted(known, mine["lock"])]
        return mine

    def moved(self, records: Records) -> Records:
        """Return records with the times and ids of the whole, but for the locks'."""
        mine = records.copy()
        for names, offset in (
            (_FRAMES, self.offset.frame),
            (_STACKS, self.offset.stack),
            (_THREADS, self.offset.thread),
        ):
            for name in names:
                if name in (mine.dtype.names or ()):
                    mine[name] = np.where(mine[name] > 0, mine[name] + np.uint32(offset), 0)
        for name in ("start_ns", "end_ns", "time_ns"):
            if name in (mine.dtype.names or ()):
                mine[name] += np.uint64(self.shift_ns)
        return mine


def _process_locks(trace: Trace) -> Iterable[Lock]:
    return (lock for lock in trace.locks.values() if lock.name and lock.type.startswith(SHARED))


def _shared_names(traces: Sequence[Trace]) -> set[str]:
    """Return the names that occur in more than one process."""
    once: set[str] = set()
    again: set[str] = set()
    for trace in traces:
        names = {lock.name for lock in _process_locks(trace)}
        again |= once & names
        once |= names
    return again


def _labelled(locks: Mapping[int, Lock]) -> dict[int, Lock]:
    """Return locks called by where they were made: the system's name says nothing to a reader."""
    counts: dict[object, int] = {}
    found = {}
    for number in sorted(locks):
        lock = locks[number]
        counts[lock.type, lock.site] = counts.get((lock.type, lock.site), 0) + 1
        name = lock.name if lock.site is None else ""
        found[number] = replace(lock, name=name, instance=counts[lock.type, lock.site])
    return found


def _status(traces: Iterable[Trace]) -> np.void | None:
    """Return sums of what recorders said of themselves, None if one said nothing."""
    whole: np.void | None = None
    for trace in traces:
        if trace.status is None:
            return None
        if whole is None:
            whole = trace.status.copy()
            continue
        for name in _SUMS:
            whole[name] += trace.status[name]
    return whole
