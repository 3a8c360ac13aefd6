"""`threading.Semaphore` and `BoundedSemaphore`.

One `acquire()` is one event: waiting for the condition inside is not another one. The lock inside
has an entry of its own, as a part of the semaphore; who waits for it waits for it, and not for a
permit.
"""

from contention_lab.capture.patches import condition
from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, ClassVar, Self

    from contention_lab.capture.undo import Undo


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
    def gone(
        record: "Any",
        inner: "dict[int, Any]" = condition.inner,
        forget: "Callable[[Any], None]" = ThreadPermits.gone,
    ) -> None:
        """Forget both it and its condition, also when this module's names are gone."""
        inner.pop(record.condition, None)
        forget(record)

    @classmethod
    def met(cls, thing: "Any") -> "Self":
        """Return those of a semaphore that was made earlier, or not through the patched `__init__`.

        From 3.13 on the interpreter enters the `__init__` of classes that were derived later by
        itself. The core has the place from the lock inside.
        """
        return cls(thing, late=True)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Record making, acquiring and releasing."""
    SemaphorePermits.bounded = module.BoundedSemaphore
    put_around(undo, module.Semaphore, "__init__", (None, _made))
    for cls in (module.Semaphore, module.BoundedSemaphore):
        for name in ("acquire", "__enter__"):
            put_around(undo, cls, name, "Semaphore.acquire", SemaphorePermits)
        put_around(undo, cls, "release", "Semaphore.release", SemaphorePermits)


def _nothing() -> None:
    """Do nothing before a condition waits."""


def _made(semaphore: "Any", _result: None, failed: bool) -> None:
    if not failed:
        SemaphorePermits(semaphore)
