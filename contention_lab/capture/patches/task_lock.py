"""`asyncio.Lock`, with the task as holder and waiter."""

from contention_lab.capture.patches import recording, tasks
from contention_lab.capture.patches.task_permits import TaskPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

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
        super().__init__(lock, "asyncio.Lock", late=late, may_be_signal=False)

    @classmethod
    def of(cls, lock: object) -> "LockPermits":
        """Return that of a lock, whenever it was made."""
        permits = cls.table.get(id(lock)) or cls(lock, late=True)
        if permits.number != recording.number:
            permits.forget()
        return permits


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
    async def acquire(self: "Any") -> bool:
        if not _core.active():
            return await original(self)
        permits = LockPermits.table.get(id(self))
        if permits is None or permits.number != recording.number:
            permits = LockPermits.of(self)
        task = tasks.current()
        if task is not None and task.coordination is not None:
            task.coordination.stop(permits.source)
        wait = None
        if self._locked or (self._waiters and not all(w.cancelled() for w in self._waiters)):
            wait = permits.begin(task)
        try:
            taken = await original(self)
        except BaseException as error:
            if wait is not None:
                permits.failed(wait, error)
            raise
        if wait is None:
            permits.take(task, count=True)
        else:
            permits.taken(task, wait)
        return taken

    return acquire


def _released(original: "Callable[..., None]") -> "Callable[..., None]":
    def release(self: "asyncio.Lock") -> None:
        end_ns = _core.now()
        original(self)
        if end_ns:
            LockPermits.of(self).give(tasks.current_party(), end_ns)

    return release
