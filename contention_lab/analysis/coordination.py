"""Waiting for others to do something: put an item, make room, set an event, arrive, end.

Waits are put together by what is waited for (all things made at one place) and what for, and for
each such case it is said who ended the waits, and whether the wakers are themselves among the
waiters: the facts that tell an idle worker from a starved one, and both from a barrier. Which of
these it is, the findings decide.

A wait that ended by a timeout, or never, has no waker. Waiting for a lock is not among it, unless
it is used as a signal: see `hand_overs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import coordination_waits
from contention_lab.analysis.sites import is_user_code
from contention_lab.analysis.windows import Windows
from contention_lab.trace import Outcome, WaitFlag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.trace import Frame, Lock, Trace

    Integers: TypeAlias = npt.NDArray[np.int64]
    Ids: TypeAlias = npt.NDArray[np.uint32]


class Purpose(Enum):
    """What a wait is for."""

    ITEM = "an item of a queue"
    ROOM = "room in a queue"
    DONE = "the items of a queue to be done"
    EVENT = "an event"
    CONDITION = "a condition"
    PERMIT = "a permit that nobody has"
    BARRIER = "others to arrive"
    THREAD = "a thread to end"
    RESULT = "a result"
    WORKER = "a worker of a pool"
    TASK = "a task for a pool"
    START = "a thread to start"
    ANSWER = "a result of a pool of multiprocessing"
    INTERNAL = "something of a library's own"


@dataclass(frozen=True, eq=False)
class CoordinationCase:
    """All waits for one purpose on the things made at one place.

    Attributes
    ----------
    purpose
        What for.
    lock
        The first of the things waited for, as the trace has it.
    locks
        Ids of all of them.
    index
        Positions in `trace.waits`, in the order of their end.
    start_ns, end_ns
        Of these waits, int64.
    thread, waker
        Of these waits, uint32; the waker is 0 where nobody is known to have ended the wait.
    wake
        The number of the wake-up that ended it, among those of the thing waited for; 0 unknown.
    lock_id, stack, waker_stack, awaited_stack, flags, outcome
        As the trace has them.
    """

    purpose: Purpose
    lock: Lock
    locks: frozenset[int]
    index: npt.NDArray[np.int32]
    start_ns: Integers
    end_ns: Integers
    thread: Ids
    waker: Ids
    wake: Ids
    lock_id: Ids
    stack: Ids
    waker_stack: Ids
    awaited_stack: Ids
    flags: npt.NDArray[np.uint16]
    outcome: npt.NDArray[np.uint8]

    @cached_property
    def windows(self) -> Windows:
        """When at least one thread waited."""
        return Windows.union(self.start_ns, self.end_ns)

    @property
    def wait_ns(self) -> int:
        """All waiting, of all threads together."""
        return int((self.end_ns - self.start_ns).sum())

    @cached_property
    def waiters(self) -> dict[int, int]:
        """How long each thread waited, in nanoseconds, the longest first."""
        return _sums(self.thread, self.end_ns - self.start_ns)

    @cached_property
    def last(self) -> npt.NDArray[np.intp]:
        """For each wait, the one with which its waiter was through: itself, or a later one.

        Who is woken, finds nothing and waits again without having let go of the lock is still
        waiting: whoever woke it in vain has ended nothing.
        """
        order = np.lexsort((self.start_ns, self.thread))
        again = self.flags[order[1:]] & int(WaitFlag.AGAIN) != 0
        again &= self.thread[order[1:]] == self.thread[order[:-1]]
        ends = np.append(np.flatnonzero(~again), len(order) - 1) if len(order) else order
        last = np.zeros(len(order), dtype=np.intp)
        last[order] = order[ends[np.searchsorted(ends, np.arange(len(order)))]]
        return last

    @cached_property
    def ender(self) -> Ids:
        """Of these waits, uint32: who ended the waiting for good; 0 where that is not known."""
        enders: Ids = self.waker[self.last]
        return enders

    @cached_property
    def wakers(self) -> dict[int, int]:
        """How much waiting each thread ended for good, in nanoseconds, the most first."""
        known = self.ender != 0
        return _sums(self.ender[known], (self.end_ns - self.start_ns)[known])

    @property
    def woken_share(self) -> float:
        """Share of the waiting that a known waker ended."""
        return sum(self.wakers.values()) / self.wait_ns if self.wait_ns else 0.0

    @property
    def again_share(self) -> float:
        """Share of the waiting that is not the first of its thread here."""
        first = np.unique(self.thread, return_index=True)[1]  # in the order of their end
        first_ns = int((self.end_ns - self.start_ns)[first].sum())
        return 1.0 - first_ns / self.wait_ns if self.wait_ns else 0.0

    @property
    def self_supplied_share(self) -> float:
        """Share of the waiting after which one was woken by a thread that waits here, too."""
        return self._own_share(self.waker)

    @property
    def self_ended_share(self) -> float:
        """Share of the waiting that threads which wait for the very same thing ended for good."""
        return self._own_share(self.ender)

    @property
    def mutual_share(self) -> float:
        """Share of the waiting after which one was woken by a thread that waits at this place, too.

        For the very same thing, or for another that was made at the same place.
        """
        own = np.isin(self.waker, np.unique(self.thread))
        return int((self.end_ns - self.start_ns)[own].sum()) / self.wait_ns if self.wait_ns else 0.0

    def _own_share(self, who: Ids) -> float:
        if not self.wait_ns:
            return 0.0
        of_lock = self.lock_id.astype(np.int64) << 32
        own = np.isin(of_lock | who, np.unique(of_lock | self.thread))
        return int((self.end_ns - self.start_ns)[own].sum()) / self.wait_ns

    @cached_property
    def batch(self) -> npt.NDArray[np.intp]:
        """Which waits were ended by one wake-up: a number for each wait, from 0."""
        alone = self.wake == 0
        if alone.all():
            return np.arange(len(alone))[::-1]
        of_lock = self.lock_id.astype(np.int64) << 32
        key = np.where(alone, -1 - np.arange(len(self.wake)), of_lock | self.wake)
        order = np.argsort(key, kind="stable")
        batch = np.zeros(len(key), dtype=np.intp)
        batch[order] = np.cumsum(np.diff(key[order], prepend=key[order][:1]) != 0)
        return batch


def coordination(trace: Trace) -> tuple[CoordinationCase, ...]:
    """Return all coordination in cases, the most waited for first."""
    spans = coordination_waits(trace)

    def column(name: str) -> npt.NDArray[Any]:
        return spans.of(trace.wait_columns[name])

    lock_id, stack, flags = column("lock"), column("stack"), column("flags")
    counters = trace.counters
    held = {*counters["lock"][counters["hold_histogram"].any(axis=1)].tolist()}
    keys, which = distinct(lock_id, stack, flags & int(WaitFlag.ROOM))
    places: dict[tuple[Any, ...], int] = {}
    place = np.zeros(len(keys), dtype=np.uint16)
    purposes: list[Purpose] = []
    for at, (lock_number, stack_number, is_for_room) in enumerate(keys):
        lock = trace.lock(lock_number)
        purpose, function = _purpose(lock, trace.stack(stack_number), is_held=lock_number in held)
        if _has_two_sides(lock.type):
            purpose, function = (Purpose.ROOM if is_for_room else Purpose.ITEM), ("", "")
        elif purpose in _OF_PROGRAM and is_of_library(trace.stack(stack_number)):
            purpose = Purpose.TASK if purpose is Purpose.ITEM else Purpose.INTERNAL
        made_at = lock.site or lock_number
        key = purpose, function, made_at, "" if purpose is Purpose.THREAD else lock.label
        number = min(places.setdefault(key, len(places)), MOST_CASES - 1)
        if number == len(purposes):
            purposes.append(purpose)
        place[at] = number
    acquired = column("outcome") == Outcome.ACQUIRED
    columns = {
        "waker": np.where(acquired, column("holder"), 0),
        "wake": np.where(acquired, column("spins"), 0),
        "lock_id": lock_id,
        "stack": stack,
        "flags": flags,
        "outcome": column("outcome"),
        "waker_stack": column("holder_stack"),
        "awaited_stack": column("awaited_stack"),
    }
    # Two stable sorts, of nearly sorted and of small numbers, are faster than one by both.
    by_end = np.argsort(spans.end_ns, kind="stable")
    case = place[which][by_end]
    order = by_end[np.argsort(case, kind="stable")]
    bounds = np.searchsorted(np.sort(case), np.arange(len(purposes) + 1))
    found = []
    for number, purpose in enumerate(purposes):
        mine = order[bounds[number] : bounds[number + 1]]
        part = spans.where(mine)
        locks = sorted({lock for (lock,) in distinct(part.lock)[0]})
        found.append(
            CoordinationCase(
                purpose=purpose,
                lock=trace.lock(locks[0]),
                locks=frozenset(locks),
                index=part.index,
                start_ns=part.start_ns,
                end_ns=part.end_ns,
                thread=part.thread,
                **{name: values[mine] for name, values in columns.items()},
            )
        )
    return tuple(sorted(found, key=lambda case: -case.wait_ns))


MOST_CASES: Final = 1 << 15
"""Cases told apart; the rest is one."""

_BY_TYPE = {
    "threading.Thread": Purpose.THREAD,
    "pthread": Purpose.THREAD,
    "pthread_barrier": Purpose.BARRIER,
    "concurrent.futures.Future": Purpose.RESULT,
    "concurrent.futures.ThreadPoolExecutor": Purpose.WORKER,
    "concurrent.futures.ProcessPoolExecutor": Purpose.WORKER,
    "queue.SimpleQueue": Purpose.ITEM,
    "asyncio.Event": Purpose.EVENT,
}
_BY_MAKER = {
    "Barrier": Purpose.BARRIER,
    "Event": Purpose.EVENT,
    "Thread": Purpose.START,
    "wait": Purpose.RESULT,
    "as_completed": Purpose.RESULT,
}
_PLAIN = ("threading.Lock", "Mutex", "asyncio.Lock")
_BY_METHOD = {"get": Purpose.ITEM, "put": Purpose.ROOM, "join": Purpose.DONE}
_BY_WAITER = {
    ("multiprocessing/pool.py", "ApplyResult.wait"): Purpose.ANSWER,
    ("multiprocessing/pool.py", "IMapIterator.next"): Purpose.ANSWER,
    ("multiprocessing/pool.py", "worker"): Purpose.TASK,
    ("concurrent/futures/process.py", "_process_worker"): Purpose.TASK,
    ("threading.py", "Thread.start"): Purpose.START,
}
"""By the library's function that waits on behalf of the program: its file's end, its name."""
_OF_PROGRAM = frozenset(
    {Purpose.ITEM, Purpose.ROOM, Purpose.EVENT, Purpose.CONDITION, Purpose.PERMIT}
)
"""Purposes that are the program's only where its code waits: a library's own worker or helper that
waits under no code of the program (`TASK`, `INTERNAL`) neither produces nor consumes for it."""


def _has_two_sides(kind: str) -> bool:
    """Tell whether the flags of a wait say if it is for an item or for room."""
    return kind.partition(" in ")[0] == "Channel" or (
        kind.startswith("asyncio.") and kind.endswith("Queue")
    )


def is_of_library(stack: Sequence[Frame]) -> bool:
    """Tell whether a stack is known and has no code of the program's in it."""
    return bool(stack) and not any(is_user_code(frame.filename) for frame in stack)


def _purpose(
    lock: Lock, stack: Sequence[Frame], *, is_held: bool
) -> tuple[Purpose, tuple[str, str]]:
    """Return what a wait is for and, where only the program's own code tells, that function.

    A plain lock that somebody holds is waited for here only by way of a condition on it.
    """
    kind, _, maker = lock.type.partition(" in ")
    inner = next((at for at, frame in enumerate(stack) if is_user_code(frame.filename)), len(stack))
    method = next(
        (
            name
            for frame in stack[:inner]
            if frame.function.endswith(tuple(f"Queue.{one}" for one in _BY_METHOD))
            for name in (frame.function.rpartition(".")[2],)
        ),
        "",
    )
    if kind == "queue.SimpleQueue" and maker.startswith("ThreadPoolExecutor"):
        return Purpose.TASK, ("", "")
    for frame in stack[:inner]:
        path = frame.filename.replace("\\", "/")
        for (file, waiter), purpose in _BY_WAITER.items():
            if frame.function == waiter and path.endswith(f"/{file}"):
                return purpose, ("", "")
    if kind in _BY_TYPE:
        return _BY_TYPE[kind], ("", "")
    if maker in _BY_MAKER:
        return _BY_MAKER[maker], ("", "")
    if maker.endswith("Queue") and method in _BY_METHOD:
        return _BY_METHOD[method], ("", "")
    user = stack[inner] if inner < len(stack) else None
    function = (user.filename, user.function) if user is not None else ("", "")
    is_permit = "Semaphore" in kind or (kind in _PLAIN and not maker and not is_held)
    return (Purpose.PERMIT if is_permit else Purpose.CONDITION), function


def _sums(who: Ids, ns: Integers) -> dict[int, int]:
    ids, at = distinct(who)
    sums = np.bincount(at, weights=ns, minlength=len(ids)).astype(np.int64).tolist()
    pairs = zip((one for (one,) in ids), sums, strict=True)
    return dict(sorted(pairs, key=lambda item: -item[1]))
