"""Something that tasks wait for until somebody else has done it: an event, an item in a queue."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False


class Signal(Beside):
    """One such thing.

    Attributes
    ----------
    source
        Its entry in the trace.
    waker
        Party and stack of who last woke somebody.
    """

    __slots__ = ("source", "waker")

    def __init__(self, thing: object, type_name: str) -> None:
        super().__init__(thing)
        self.source = _core.Source(type_name)
        self.waker = 0, 0

    @classmethod
    def of(cls, thing: object, type_name: str) -> "Signal":
        """Return that of a thing, whenever it was made."""
        known = cls.table.get(id(thing))
        return known if known is not None else cls(thing, type_name)

    def wake(self) -> None:
        """Note that whoever runs is about to wake somebody."""
        self.waker = tasks.current_party(), _core.capture_stack()
