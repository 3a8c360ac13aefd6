"""`multiprocessing.Lock`, `RLock`, `Semaphore` and `BoundedSemaphore`.

Each process has a trace of its own; the entry's name is that of the semaphore in the system, the
same in every process, by which a report brings them together. Who holds it is known only if it is
this process.

These objects have `acquire` and `release` as attributes of their own, bound to the C object inside;
ours are bound to a `Meter`. Objects made before the recording keep what they have.
"""

import os

from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo

_RECURSIVE = 0
_NAMES = frozenset({"BoundedSemaphore", "Semaphore", "RLock", "Lock"})
_made = 0


class Meter:
    """What stands before the C object of one lock.

    Attributes
    ----------
    permits
        What this process holds of it; None: it is an inner part, and not recorded.
    """

    __slots__ = ("_is_lock", "_is_recursive", "_semlock", "permits")

    def __init__(self, lock: "Any", type_name: str) -> None:
        semlock = lock._semlock
        self._semlock = semlock
        self._is_lock = semlock.maxvalue == 1
        self._is_recursive = semlock.kind == _RECURSIVE
        self.permits: SemLockPermits | None = SemLockPermits(
            lock, type_name, semlock.name or _own_name(), may_be_signal=not self._is_lock
        )

    def acquire(self, block: bool = True, timeout: float | None = None) -> "Any":
        """Acquire a permit: the original's `acquire`."""
        permits, semlock = self.permits, self._semlock
        if permits is None or not _core.active():
            return semlock.acquire(block, timeout)
        if permits.is_stale:
            permits.forget()
        if self._is_recursive and semlock._is_mine():
            _core.count(permits.source, 0, 0, 1)
            return semlock.acquire(block, timeout)
        _core.wait_stop(permits.source)  # a condition has been notified and takes its lock again
        taken = semlock.acquire(False)
        if not taken and block:
            permits.wait()
            try:
                taken = semlock.acquire(block, timeout)
            except BaseException:
                permits.end(_core.INTERRUPTED)
                raise
        if taken and self._is_lock:
            permits.drop()  # if another process released it, we have not seen that
        permits.end(_core.ACQUIRED if taken else _core.TIMED_OUT)
        return taken

    def release(self) -> None:
        """Release a permit: the original's `release`."""
        permits, semlock = self.permits, self._semlock
        end_ns = 0 if permits is None else _core.now()
        if permits is None or not end_ns or (self._is_recursive and semlock._count() > 1):
            semlock.release()
            return
        if permits.is_stale:
            permits.forget()
        permits.wake()
        semlock.release()
        permits.give(end_ns)


class SemLockPermits(ThreadPermits):
    """What this process holds of one lock."""

    __slots__ = ()

    def __init__(self, lock: object, type_name: str, name: str, *, may_be_signal: bool) -> None:
        was_sent = "_is_fork_ctx" not in vars(lock)  # by another process, which made it
        super().__init__(lock, type_name, name, late=was_sent)
        self.may_be_signal = may_be_signal
        self.shared = True


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap what binds the methods, and the two that go to the C object directly."""
    wrap(undo, module.SemLock, "_make_methods", _bound)
    wrap(undo, module.SemLock, "__enter__", _entered)
    wrap(undo, module.SemLock, "__exit__", _exited)


def meter_of(lock: "Any") -> "Meter | None":
    """Return what stands before a lock's C object, None if nothing does."""
    owner = getattr(vars(lock).get("acquire"), "__self__", None)
    return owner if type(owner) is Meter else None


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


def _bound(original: "Callable[[Any], None]") -> "Callable[[Any], None]":
    def _make_methods(self: "Any") -> None:
        original(self)
        meter = Meter(self, _type_name(self))
        self.acquire = meter.acquire
        self.release = meter.release

    return _make_methods


def _entered(original: "Callable[[Any], bool]") -> "Callable[[Any], bool]":
    def __enter__(self: "Any") -> bool:  # noqa: N807
        meter = meter_of(self)
        return original(self) if meter is None else meter.acquire()

    return __enter__


def _exited(original: "Callable[..., None]") -> "Callable[..., None]":
    def __exit__(self: "Any", *args: object) -> None:  # noqa: N807
        meter = meter_of(self)
        if meter is None:
            return original(self, *args)
        return meter.release()

    return __exit__
