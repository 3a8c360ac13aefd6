"""`asyncio.Lock`, with the task as holder and waiter."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.task_permits import TaskPermits, blocks, gives, is_of, took
from contention_lab.capture.patches.wrapping import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class LockPermits(TaskPermits):
    """The one permit of a lock."""

    __slots__ = ()

    def __init__(self, lock: object, *, late: bool = False) -> None:
        super().__init__(lock, "asyncio.Lock", late=late)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making, acquiring and releasing."""
    wrap(undo, module.Lock, "__init__", _made)
    wrap(undo, module.Lock, "acquire", _acquired)
    wrap(undo, module.Lock, "release", _released)
    tasks.adoptable.add(module.Lock.acquire.__code__)


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "asyncio.Lock") -> None:  # noqa: N807
        original(self)
        LockPermits(self)

    return __init__


def _acquired(
    original: "Callable[..., Coroutine[Any, Any, bool]]",
) -> "Callable[..., Coroutine[Any, Any, bool]]":
    is_asyncios = is_of("asyncio.locks", original)

    async def acquire(self: "Any") -> bool:
        if self._locked or (self._waiters and not all(w.cancelled() for w in self._waiters)):
            wait = blocks(LockPermits, self)
            try:
                taken = await original(self)
            except BaseException as error:
                if wait is not None:
                    wait.failed(error)
                raise
            if wait is not None:
                wait.ended()
            return taken
        if not is_asyncios:
            taken = await original(self)
            took(LockPermits, self)
            return taken
        took(LockPermits, self)
        self._locked = True
        return True

    return acquire


def _released(original: "Callable[..., None]") -> "Callable[..., None]":
    def release(self: "Any") -> None:
        if self._locked:
            gives(LockPermits, self)
        original(self)

    return release
