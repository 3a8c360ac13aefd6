"""`ProcessPoolExecutor`: its futures get one entry.

When a task begins, only the worker process knows.
"""

from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.executors import Executor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from contention_lab.capture.undo import Undo


class ProcessPool(Executor):
    """One such executor."""

    __slots__ = ()
    type_name = "concurrent.futures.ProcessPoolExecutor"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Follow submitting."""
    what = "ProcessPoolExecutor.submit"
    put_around(undo, module.ProcessPoolExecutor, "submit", what, ProcessPool)
