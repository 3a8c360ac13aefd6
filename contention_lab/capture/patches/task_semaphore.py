"""`asyncio.Semaphore` and `BoundedSemaphore`: each permit is a hold of the task that took it."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.task_permits import PLACES, TaskPermits, probes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import ClassVar

    from contention_lab.capture.undo import Undo


class TaskSemaphorePermits(TaskPermits):
    """The permits of one semaphore."""

    __slots__ = ()
    bounded: "ClassVar[type]"

    def __init__(self, semaphore: object, *, late: bool = False) -> None:
        bounded = "Bounded" if issubclass(type(semaphore), self.bounded) else ""
        super().__init__(semaphore, f"asyncio.{bounded}Semaphore", late=late)
        self.may_be_signal = True


_PROBES = probes_of(TaskSemaphorePermits)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch making, acquiring and releasing; a bounded one does all that through its base."""
    TaskSemaphorePermits.bounded = module.BoundedSemaphore
    if insert(undo, module.Semaphore, PLACES, _PROBES):
        tasks.adoptable.add(id(module.Semaphore.acquire.__code__))
