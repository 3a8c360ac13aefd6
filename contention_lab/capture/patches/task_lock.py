"""`asyncio.Lock`, with the task as holder and waiter."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.task_permits import PLACES, TaskPermits, probes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from contention_lab.capture.undo import Undo


class LockPermits(TaskPermits):
    """The one permit of a lock."""

    __slots__ = ()

    def __init__(self, lock: object, *, late: bool = False) -> None:
        super().__init__(lock, "asyncio.Lock", late=late)


_PROBES = probes_of(LockPermits)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch making, acquiring and releasing."""
    if insert(undo, module.Lock, PLACES, _PROBES):
        tasks.adoptable.add(id(module.Lock.acquire.__code__))
