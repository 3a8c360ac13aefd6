"""`threading.Semaphore` and `BoundedSemaphore`.

One `acquire()` is one event: waiting for the condition inside is not another one. The lock inside
has an entry of its own, as a part of the semaphore; who waits for it waits for it, and not for a
permit.
"""

from contention_lab.capture.patches import condition, recording
from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, ClassVar

    from contention_lab.capture.undo import Undo


class SemaphorePermits(ThreadPermits):
    """The permits of one semaphore.

    Attributes
    ----------
    condition
        The id of the condition inside.
    silent
        It is not recorded: the library that made it for itself records what it stands for.
    """

    __slots__ = ("condition", "silent")
    bounded: "ClassVar[type]"

    def __init__(self, semaphore: "threading.Semaphore", *, late: bool = False) -> None:
        bounded = "Bounded" if issubclass(type(semaphore), self.bounded) else ""
        super().__init__(semaphore, f"threading.{bounded}Semaphore", late=late)
        self.silent = False
        self.condition = id(semaphore._cond)  # type: ignore[attr-defined]
        condition.inner[self.condition] = self.wait
        _core.part_of(semaphore._cond._lock, self.source)  # type: ignore[attr-defined]

    @classmethod
    def silence(cls, semaphore: "threading.Semaphore") -> None:
        """Do not record a semaphore that has not been used yet, nor the lock inside."""
        permits = cls.of(semaphore)
        permits.silent = True
        condition.inner[permits.condition] = _nothing
        _core.same_as(semaphore._cond._lock, None)  # type: ignore[attr-defined]

    @staticmethod
    def gone(record: "Any") -> None:
        """Forget the semaphore and its condition."""
        condition.inner.pop(record.condition, None)
        ThreadPermits.gone(record)

    @classmethod
    def of(cls, semaphore: "threading.Semaphore") -> "SemaphorePermits":
        """Return those of a semaphore, whenever it was made."""
        permits = cls.table.get(id(semaphore)) or cls(semaphore, late=True)
        if permits.number != recording.number:
            permits.forget()
        return permits


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making, acquiring and releasing."""
    SemaphorePermits.bounded = module.BoundedSemaphore
    wrap(undo, module.Semaphore, "__init__", _made)
    for cls in (module.Semaphore, module.BoundedSemaphore):
        wrap(undo, cls, "acquire", _acquired)
        wrap(undo, cls, "__enter__", _acquired)
        wrap(undo, cls, "release", _released)


def _nothing() -> None:
    """Do nothing before a condition waits."""


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "threading.Semaphore", value: int = 1) -> None:  # noqa: N807
        original(self, value)
        SemaphorePermits(self)

    return __init__


def _acquired(original: "Callable[..., bool]") -> "Callable[..., bool]":
    def acquire(
        self: "threading.Semaphore", blocking: bool = True, timeout: float | None = None
    ) -> bool:
        if not _core.active():
            return original(self, blocking, timeout)
        permits = SemaphorePermits.of(self)
        if permits.silent:
            return original(self, blocking, timeout)
        try:
            taken = original(self, blocking, timeout)
        except BaseException:
            permits.end(_core.INTERRUPTED)
            raise
        permits.end(_core.ACQUIRED if taken else _core.TIMED_OUT)
        return taken

    return acquire


def _released(original: "Callable[..., None]") -> "Callable[..., None]":
    def release(self: "threading.Semaphore", n: int = 1) -> None:
        permits = None if not _core.active() else SemaphorePermits.of(self)
        if permits is None or permits.silent:
            original(self, n)
            return
        end_ns = _core.now()
        permits.wake()
        original(self, n)
        for _ in range(n):
            permits.release(end_ns)

    return release
