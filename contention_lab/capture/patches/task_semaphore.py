"""`asyncio.Semaphore` and `BoundedSemaphore`: each permit is a hold of the task that took it."""

from contention_lab.capture.patches import recording, tasks
from contention_lab.capture.patches.task_permits import TaskPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any, ClassVar

    from contention_lab.capture.undo import Undo


class TaskSemaphorePermits(TaskPermits):
    """The permits of one semaphore."""

    __slots__ = ()
    bounded: "ClassVar[type]"

    def __init__(self, semaphore: object, *, late: bool = False) -> None:
        bounded = "Bounded" if issubclass(type(semaphore), self.bounded) else ""
        super().__init__(semaphore, f"asyncio.{bounded}Semaphore", late=late, may_be_signal=True)

    @classmethod
    def of(cls, semaphore: object) -> "TaskSemaphorePermits":
        """Return those of a semaphore, whenever it was made."""
        permits = cls.table.get(id(semaphore)) or cls(semaphore, late=True)
        if permits.number != recording.number:
            permits.forget()
        return permits


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making, acquiring and releasing; a bounded one releases through its base."""
    TaskSemaphorePermits.bounded = module.BoundedSemaphore
    wrap(undo, module.Semaphore, "__init__", _made)
    wrap(undo, module.Semaphore, "acquire", _acquired)
    wrap(undo, module.Semaphore, "release", _released)
    tasks.adoptable.add(module.Semaphore.acquire.__code__)


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "asyncio.Semaphore", value: int = 1) -> None:  # noqa: N807
        original(self, value)
        TaskSemaphorePermits(self)

    return __init__


def _acquired(
    original: "Callable[..., Coroutine[Any, Any, bool]]",
) -> "Callable[..., Coroutine[Any, Any, bool]]":
    async def acquire(self: "Any") -> bool:
        if not _core.active():
            return await original(self)
        permits = TaskSemaphorePermits.table.get(id(self))
        if permits is None or permits.number != recording.number:
            permits = TaskSemaphorePermits.of(self)
        task = tasks.current()
        wait = None
        if self._value <= 0 or (self._waiters and not all(w.cancelled() for w in self._waiters)):
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
    def release(self: "asyncio.Semaphore") -> None:
        end_ns = _core.now()
        if end_ns:
            permits = TaskSemaphorePermits.of(self)
            if permits.waits and not permits.held:
                permits.note_waker()
        original(self)
        if end_ns:
            permits.give(tasks.current_party(), end_ns)

    return release
