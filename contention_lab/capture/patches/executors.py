"""Executors: one entry for the results of each, and one for the capacity of its workers.

A future has a condition of its own, used once or twice; all those of one executor go by one entry.
"""

from _thread import _local

from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Executor(Beside):
    """One executor.

    Attributes
    ----------
    results
        What threads wait for in `Future.result`.
    workers
        What tasks wait for until they begin.
    """

    __slots__ = ("results", "workers")

    def __init__(self, executor: "Any", type_name: str) -> None:
        super().__init__(executor)
        prefix = getattr(executor, "_thread_name_prefix", None)
        name = None if prefix is None else str(prefix)
        self.results = _core.Source("concurrent.futures.Future", name)
        self.workers = _core.Source(type_name, name)


class _Submitting(_local):
    executor: Executor | None = None


submitting = _Submitting()
"""Into which executor this thread is putting a task at the moment."""
