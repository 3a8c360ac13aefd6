"""Something that tasks wait for until somebody else has done it: an event, an item in a queue."""

from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Self

    from contention_lab.capture.patches.tasks import Task


class Signal(Beside):
    """One such thing; a subclass says of which type.

    Attributes
    ----------
    source
        Its entry in the trace.
    wakers
        Party and stack of who last woke somebody, and how many wake-ups that makes, by the id of
        what holds the waiters.
    """

    __slots__ = ("_tasks", "source", "wakers")
    type_name: "ClassVar[str]"

    def __init__(self, thing: object, *, late: bool = False) -> None:
        super().__init__(thing)
        self.source = _core.Source(self.type_name, None, late)
        self.forget()

    @classmethod
    def met(cls, thing: object) -> "Self":
        """Return that of a thing that was made earlier."""
        return cls(thing, late=True)

    def forget(self) -> None:
        """Begin anew in another recording."""
        super().forget()
        self.wakers: dict[int, tuple[int, int, int]] = {}
        self._tasks: dict[int, Task | None] = {}

    def wake(self, waiters: object) -> None:
        """Note that whoever runs is about to wake one of the waiters."""
        task = _core.current_task()
        party = _core.current_party() if task is None else task.party
        self.wakers[id(waiters)] = party, _core.capture_stack(), self.waker(waiters)[2] + 1
        self._tasks[id(waiters)] = task

    def awaited(self, waiters: object) -> int:
        """Return the stack of what the task awaits that last woke one of the waiters, else 0."""
        task = self._tasks.get(id(waiters))
        return 0 if task is None or task.is_stale else task.stack()

    def waker(self, waiters: object) -> "tuple[int, int, int]":
        """Return who last woke one of the waiters, and the number of that wake-up."""
        return self.wakers.get(id(waiters), (0, 0, 0))
