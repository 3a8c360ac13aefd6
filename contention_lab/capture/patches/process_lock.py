"""`multiprocessing.Lock`, `RLock`, `Semaphore` and `BoundedSemaphore`.

Each process has a trace of its own; the entry's name is that of the semaphore in the system, the
same in every process, by which a report brings them together. The process that made it says where,
even if it only hands it on. Who holds it is known only if it is this process. Acquiring and
releasing is followed in `native/process_lock.h`; objects made before the recording are not
recorded.
"""

import os

from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from contention_lab.capture.undo import Undo

_RECURSIVE = 0
_NAMES = frozenset({"BoundedSemaphore", "Semaphore", "RLock", "Lock"})
_made = 0
_by_semlock: "dict[int, ThreadPermits]" = {}
"""By the id of the C object inside a lock, what this process has of it."""


class SemLockPermits(ThreadPermits):
    """What this process holds of one lock.

    Attributes
    ----------
    semlock
        The id of the C object inside.
    """

    __slots__ = ("semlock",)

    def __init__(self, lock: "Any") -> None:
        semlock = lock._semlock
        was_sent = "_is_fork_ctx" not in vars(lock)  # by another process, which made it
        super().__init__(lock, _type_name(lock), semlock.name or _own_name(), late=was_sent)
        self.may_be_signal = semlock.maxvalue != 1
        self.nests = semlock.kind == _RECURSIVE
        self.shared = True
        self.semlock = id(semlock)

    @staticmethod
    def gone(
        record: "Any",
        known: "dict[int, ThreadPermits]" = _by_semlock,
        forget: "Callable[[Any], None]" = ThreadPermits.gone,
    ) -> None:
        """Forget the lock, also when the interpreter ends: then this module's names are gone."""
        semlock = record.semlock
        if known.get(semlock) is record:
            del known[semlock]
        forget(record)


def install(undo: "Undo", module: "Any") -> None:
    """Follow the making of locks, and what their C type does."""
    if _core.record_process_locks(module._multiprocessing.SemLock, _by_semlock):
        undo.call(_core.leave_process_locks)
        put_around(undo, module.SemLock, "_make_methods", (None, _noted))
        put_around(undo, module.SemLock, "__getstate__", (None, _sent))


def permits_of(lock: object) -> "SemLockPermits | None":
    """Return what this process holds of a lock, None if it is not recorded."""
    found: SemLockPermits | None = SemLockPermits.table.get(id(lock))
    return found


def _noted(lock: "Any", _result: None, failed: bool) -> None:
    if not failed:
        permits = SemLockPermits(lock)
        _by_semlock[permits.semlock] = permits


def _sent(lock: "Any", _result: object, failed: bool) -> None:
    """Name a lock that another process gets by a pickle: only here is known where it was made."""
    permits = None if failed else permits_of(lock)
    if permits is not None and not permits.silent:
        _core.name_in_trace(permits.source)


def _own_name() -> str:
    """Return a name for a semaphore that has none any more: it goes to children by fork only."""
    global _made
    _made += 1
    return f"/fork-{os.getpid()}-{_made}"


def _type_name(lock: object) -> str:
    """Return what to call the type of a lock, of which the program may have a subclass."""
    for cls in type(lock).__mro__:
        if cls.__module__ == "multiprocessing.synchronize" and cls.__name__ in _NAMES:
            return f"multiprocessing.{cls.__name__}"
    return "multiprocessing.SemLock"
