"""Something that tasks wait for until somebody else has done it: an event, an item in a queue."""

from contention_lab.capture.patches import recording, tasks
from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False


class Signal(Beside):
    """One such thing.

    Attributes
    ----------
    source
        Its entry in the trace.
    wakers
        Party and stack of who last woke somebody, by the id of what holds the waiters.
    """

    __slots__ = ("_tasks", "source", "wakers")

    def __init__(self, thing: object, type_name: str, *, late: bool = False) -> None:
        super().__init__(thing)
        self.source = _core.Source(type_name, None, late)
        self.wakers: dict[int, tuple[int, int]] = {}
        self._tasks: dict[int, tasks.Task | None] = {}

    @classmethod
    def of(cls, thing: object, type_name: str) -> "Signal":
        """Return that of a thing, whenever it was made."""
        known = cls.table.get(id(thing))
        return known if known is not None else cls(thing, type_name, late=True)

    def wake(self, waiters: object) -> None:
        """Note that whoever runs is about to wake one of the waiters."""
        self.wakers[id(waiters)] = tasks.current_party(), _core.capture_stack()
        self._tasks[id(waiters)] = tasks.current()

    def awaited(self, waiters: object) -> int:
        """Return the stack of what the task awaits that last woke one of the waiters, else 0."""
        task = self._tasks.get(id(waiters))
        return 0 if task is None or task.number != recording.number else task.stack()

    def waker(self, waiters: object) -> "tuple[int, int]":
        """Return who last woke one of the waiters."""
        return self.wakers.get(id(waiters), (0, 0))
