"""`threading.Semaphore` and `BoundedSemaphore`.

One `acquire()` is one event: waiting for the condition inside is not another one. The lock inside
has an entry of its own, as a part of the semaphore; who waits for it waits for it, and not for a
permit.
"""

from contention_lab.capture.patches import condition
from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, ClassVar, Self

    from contention_lab.capture.undo import Undo

_attempted, _giving, _given = _core.attempted, _core.giving, _core.given
_ACQUIRED, _TIMED_OUT, _INTERRUPTED = _core.ACQUIRED, _core.TIMED_OUT, _core.INTERRUPTED


class SemaphorePermits(ThreadPermits):
    """The permits of one semaphore.

    Attributes
    ----------
    condition
        The id of the condition inside.
    """

    __slots__ = ("condition",)
    bounded: "ClassVar[type]"

    def __init__(self, semaphore: "threading.Semaphore", *, late: bool = False) -> None:
        bounded = "Bounded" if issubclass(type(semaphore), self.bounded) else ""
        super().__init__(semaphore, f"threading.{bounded}Semaphore", late=late)
        self.may_be_signal = True
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
    def met(cls, thing: "Any") -> "Self":
        """Return those of a semaphore that was made earlier."""
        return cls(thing, late=True)


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
        try:
            taken = original(self, blocking, timeout)
        except BaseException:
            _attempted(SemaphorePermits, self, _INTERRUPTED)
            raise
        _attempted(SemaphorePermits, self, _ACQUIRED if taken else _TIMED_OUT)
        return taken

    return acquire


def _released(original: "Callable[..., None]") -> "Callable[..., None]":
    def release(self: "threading.Semaphore", n: int = 1) -> None:
        end_ns = _giving(SemaphorePermits, self)
        original(self, n)
        if end_ns:
            _given(SemaphorePermits, self, end_ns, n)

    return release
