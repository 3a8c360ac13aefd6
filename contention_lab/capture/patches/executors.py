"""Executors: one entry for the results of each, and one for the capacity of its workers.

A future has a condition of its own, used once or twice; all those of one executor go by one entry.
Submitting is followed in `native/pool.h`.
"""

from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Executor(Beside, _core.Pool):
    """One executor; a subclass says of which type.

    `results` is what threads wait for in `Future.result`, `workers` what tasks wait for until they
    begin.
    """

    __slots__ = ()
    type_name: "ClassVar[str]"

    def __init__(self, executor: "Any") -> None:
        super().__init__(executor)
        prefix = getattr(executor, "_thread_name_prefix", None)
        name = None if prefix is None else str(prefix)
        self.results = _core.Source("concurrent.futures.Future", name)
        self.workers = _core.Source(self.type_name, name)
        self.forget()
