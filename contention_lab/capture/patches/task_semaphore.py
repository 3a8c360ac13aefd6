"""`asyncio.Semaphore` and `BoundedSemaphore`: each permit is a hold of the task that took it."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.task_permits import TaskPermits, blocks, gives, is_of, took
from contention_lab.capture.patches.wrapping import wrap

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
        super().__init__(semaphore, f"asyncio.{bounded}Semaphore", late=late)
        self.may_be_signal = True


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
    is_asyncios = is_of("asyncio.locks", original)

    async def acquire(self: "Any") -> bool:
        if self.locked():
            wait = blocks(TaskSemaphorePermits, self)
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
            took(TaskSemaphorePermits, self)
            return taken
        took(TaskSemaphorePermits, self)
        self._value -= 1
        return True

    return acquire


def _released(original: "Callable[..., None]") -> "Callable[..., None]":
    def release(self: "asyncio.Semaphore") -> None:
        gives(TaskSemaphorePermits, self)
        original(self)

    return release
