"""Locks of native code that threads waited for: those of libraries, extensions, the interpreter.

It takes the events of the layer below Python (`Trace.native_waits`). They are apart from the locks
of Python code: no other table counts them. What belongs to a wait that is recorded by itself (a
thread that is joined, a lock of Python's) is left out here.

Every wait is divided over the threads that let go of the lock meanwhile: from one release to the
next it was with the thread that then released it. Without any, it was with the holder that the wait
names. What comes after the last release is nobody's: a woken thread needs its time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import bounded, bounds, lengths_ns
from contention_lab.analysis.native_blame import blamed_releases, settled_stacks
from contention_lab.analysis.native_identity import NativeIdentity, native_identity
from contention_lab.analysis.native_selection import NativeSelection
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.sites import user_frame
from contention_lab.trace import Frame, Outcome
from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace
    from contention_lab.trace.native import NativeFrame, NativeLock

    Integers = npt.NDArray[np.int64]
    Key = tuple[NativeIdentity, Frame | None]

SPUN: Final = frozenset({NativeKind.YIELD, NativeKind.SPINLOCK})
"""Kinds for which threads wait on a CPU: calling sched_yield() again and again, or in a loop."""

EVERYTHING: Final = NativeSelection()


@dataclass(frozen=True, slots=True)
class NativeParty:
    """A place on one side of a native lock.

    Attributes
    ----------
    site
        The innermost frame of the program's Python code; None for threads that ran none.
    stack
        Innermost first: native frames (line 0), then Python's.
    seconds
        How long it waited, or made others wait.
    """

    site: Frame | None
    stack: tuple[Frame, ...]
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class NativeLockRow:
    """Native locks of one kind at one function of one library; of the interpreter, at one place.

    Attributes
    ----------
    identity
        What it is.
    locks
        How many there are; 1 for those of the interpreter, which have no address of their own.
    site
        Where the program first waited for it; None for threads that run no Python.
    waits, wait_s, longest_s
        How often, how long together and how long at most threads waited, in seconds.
    spin_s
        Of it: on a CPU, in series of sched_yield() or at a spinlock; the rest was asleep. Spinning
        without such calls before a sleep is not seen.
    with_gil_s
        Of it: the thread had the GIL meanwhile, so that all others waited for that.
    blamed_s
        Of `wait_s`: it is known which thread had it.
    victims, holders
        Places that waited, and that made others wait; the most first.
    users
        Native ids of the threads that waited for it or had it.
    events
        The waits, `schema.NATIVE_WAIT`.
    """

    identity: NativeIdentity
    locks: int
    site: Frame | None
    waits: int
    wait_s: float
    longest_s: float
    spin_s: float
    with_gil_s: float
    blamed_s: float
    victims: tuple[NativeParty, ...]
    holders: tuple[NativeParty, ...]
    users: frozenset[int]
    events: Records

    @property
    def label(self) -> str:
        """What to call it: `a lock inside libstore (store)`."""
        function = "" if self.identity.by_place else self.identity.function
        return f"{self.identity.text} ({function})" if function else self.identity.text


def native_locks(
    trace: Trace, selection: NativeSelection = EVERYTHING
) -> tuple[NativeLockRow, ...]:
    """Sum up the waits for native locks.

    Parameters
    ----------
    trace
        A trace, not cut down to some of its records.
    selection
        Which waits count.

    Returns
    -------
    tuple of NativeLockRow
        Those of the longest waits first; empty without the layer below Python.
    """
    events = trace.native_waits
    if not len(events):
        return ()
    is_release = events["flags"] & int(NativeWaitFlag.RELEASE) != 0
    waits = events[~is_release]
    waits = waits[~_told_elsewhere(trace, waits)]
    releases = events[is_release]
    groups: dict[Key, list[tuple[NativeLock, Records, Records]]] = defaultdict(list)
    released = dict(_by_lock(releases))
    for lock, some in _by_lock(waits):
        known = trace.native.locks.get(lock)
        if known is None:
            continue
        for key, chosen in _identified(trace, known, some, selection):
            groups[key].append((known, chosen, released.get(lock, releases[:0])))
    rows = [_row(trace, key, parts) for key, parts in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.wait_s, row.identity.text, str(row.site))))


def native_frames(frames: Iterable[NativeFrame]) -> tuple[Frame, ...]:
    """Return places in native code as frames: `~` before a name that is only the nearest."""
    return tuple(
        Frame(
            f"{'~' * frame.is_nearest}{frame.symbol}" if frame.symbol else f"+{frame.offset:#x}",
            frame.image,
            0,
            0,
        )
        for frame in frames
    )


def _told_elsewhere(trace: Trace, waits: Records) -> npt.NDArray[np.bool_]:
    """Tell which waits are within a wait of the same thread that is recorded by itself."""
    columns = trace.wait_columns
    tried = columns["outcome"] == Outcome.FAILED_TRY
    if not len(columns) or tried.all():
        return np.zeros(len(waits), dtype=np.bool_)
    thread = columns["thread"][~tried].astype(np.int64)
    start, end = (bounded(columns[name][~tried]) for name in ("start_ns", "end_ns"))
    first, last = bounds(waits)
    middle = (first + last) // 2
    start_key, end_key, key = on_one_line(
        (thread, start), (thread, end), (waits["thread"].astype(np.int64), middle)
    )
    begun = np.searchsorted(np.sort(start_key), key, side="right")
    ended = np.searchsorted(np.sort(end_key), key, side="left")
    told: npt.NDArray[np.bool_] = (begun > ended) & (waits["thread"] != 0)
    return told


def _identified(
    trace: Trace, lock: NativeLock, waits: Records, selection: NativeSelection
) -> Iterator[tuple[Key, Records]]:
    """Divide the chosen waits for one address by what was waited for."""
    settled = settled_stacks(trace, waits)
    kept = selection.kept(trace, waits, settled)
    waits, settled = waits[kept], settled[kept]
    if not len(waits):
        return
    sorts: dict[Key, list[int]] = defaultdict(list)
    pairs, which = np.unique(
        np.stack([settled, waits["stack"].astype(np.int64)]), axis=1, return_inverse=True
    )
    for at, (native, stack) in enumerate(pairs.T.tolist()):
        identity = native_identity(lock, trace.native_stack(native))
        site = None
        if identity.by_place:  # it may be spun for first, and slept for then
            identity = replace(identity, type_name="")
            site = user_frame(trace.stack(stack))
        sorts[identity, site].append(at)
    for key, members in sorts.items():
        yield key, waits[np.isin(which.reshape(-1), members)]


def _row(trace: Trace, key: Key, parts: list[tuple[NativeLock, Records, Records]]) -> NativeLockRow:
    identity, _ = key
    waits = np.concatenate([part for _, part, _ in parts])
    length = lengths_ns(waits)
    held: dict[tuple[int, int], int] = defaultdict(int)
    users = set(waits["native_id"].tolist())
    blamed_ns = 0
    for _, some, releases in parts:
        for (stack, native_stack, thread), ns in blamed_releases(some, releases).items():
            held[stack, native_stack] += ns
            blamed_ns += ns
            users.add(thread)
    waited: dict[tuple[int, int], int] = defaultdict(int)
    for stack, native_stack, ns in zip(
        waits["stack"].tolist(), waits["native_stack"].tolist(), length.tolist(), strict=True
    ):
        waited[stack, native_stack] += ns
    victims = _parties(trace, waited)
    spun = sum(int(lengths_ns(part).sum()) for lock, part, _ in parts if lock.kind in SPUN)
    if identity.by_place:
        identity = replace(identity, type_name=_kind(parts).type_name)
    if identity.brief and not held and len(users) > 1:
        held, blamed_ns = waited, int(length.sum())
    first = waits[np.argmin(waits["start_ns"])]
    has_gil = waits["flags"] & int(NativeWaitFlag.STACK_LATER) != 0
    return NativeLockRow(
        identity=identity,
        locks=1 if identity.by_place else len({lock.id for lock, _, _ in parts}),
        site=user_frame(trace.stack(int(first["stack"]))),
        waits=len(waits),
        wait_s=float(length.sum()) / 1e9,
        longest_s=float(length.max(initial=0)) / 1e9,
        spin_s=spun / 1e9,
        with_gil_s=float(length[has_gil].sum()) / 1e9,
        blamed_s=blamed_ns / 1e9,
        victims=victims,
        holders=_parties(trace, held),
        users=frozenset(users),
        events=waits,
    )


def _kind(parts: list[tuple[NativeLock, Records, Records]]) -> NativeKind:
    """Return what threads waited for longest: asleep, if they ever were."""
    spent: dict[NativeKind, int] = defaultdict(int)
    for lock, waits, _ in parts:
        spent[lock.kind] += int(lengths_ns(waits).sum())
    return max(spent, key=lambda kind: (kind not in SPUN, spent[kind], -kind))


def _parties(trace: Trace, sums: Mapping[tuple[int, int], int]) -> tuple[NativeParty, ...]:
    """Return the places of stacks, by the function of the program's code, the most first."""
    places: dict[tuple[str, str] | None, dict[tuple[int, int], int]] = defaultdict(dict)
    for (stack, native_stack), ns in sums.items():
        frame = user_frame(trace.stack(stack))
        place = None if frame is None else (frame.filename, frame.function)
        places[place][stack, native_stack] = ns
    found = []
    for stacks in places.values():
        # A wait that is too short for a native stack has one frame: a deep one says more.
        depth = {pair: len(trace.native_stack(pair[1])) > 1 for pair in stacks}
        stack, native_stack = max(
            stacks, key=lambda pair: (depth[pair], stacks[pair], -pair[0], -pair[1])
        )
        python = trace.stack(stack)
        whole = (*native_frames(trace.native_stack(native_stack)), *python)
        found.append(NativeParty(user_frame(python), whole, sum(stacks.values()) / 1e9))
    return tuple(sorted(found, key=lambda party: (-party.seconds, str(party.site))))


def _by_lock(events: Records) -> Iterator[tuple[int, Records]]:
    if not len(events):
        return
    order = np.argsort(events["lock"], kind="stable")
    ids, first = np.unique(events["lock"][order], return_index=True)
    for lock, begin, end in zip(ids.tolist(), first, [*first[1:], len(order)], strict=True):
        yield lock, events[order[begin:end]]
