"""`queue.SimpleQueue`: waiting for an item. It is a C type, and recorded in C.

See `native/simple_queue.h`: nothing of what Python code can see of the type is replaced.
"""

from contention_lab.capture.patches.permits import Permits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Self

    from contention_lab.capture.undo import Undo


class QueueRecord(Permits):
    """One queue: its entry in the trace, and who waits; it has no permits."""

    __slots__ = ()

    def __init__(self, queue: object, *, late: bool = False) -> None:
        super().__init__(queue, "queue.SimpleQueue", late=late)

    @classmethod
    def met(cls, thing: object) -> "Self":
        """Return that of a queue that was made earlier."""
        return cls(thing, late=True)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Record queues of the type, whenever they were made."""
    if _core.record_queues(module.SimpleQueue, QueueRecord, module.Empty):
        undo.call(_core.forget_queues)
