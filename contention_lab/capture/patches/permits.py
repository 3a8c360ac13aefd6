"""The permits of a semaphore: each permit is a hold of its own; a lock has one.

Who has which is the core's business (`native/permits.h`); here is what is common to semaphores of
`threading`, `asyncio` and `multiprocessing`.
"""

from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

CONTENTION = 0
COORDINATION = 1


class Permits(Beside, _core.Permits):
    """The permits of one semaphore."""

    __slots__ = ()

    def __init__(
        self, thing: object, type_name: str, name: str | None = None, *, late: bool = False
    ) -> None:
        super().__init__(thing)
        self.source = _core.Source(type_name, name, late)
        self.forget()
