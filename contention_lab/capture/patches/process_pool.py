"""`ProcessPoolExecutor`: its futures get one entry.

When a task begins, only the worker process knows.
"""

from contention_lab.capture.patches.executors import Executor, submitting
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo

_TYPE = "concurrent.futures.ProcessPoolExecutor"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap submitting."""
    wrap(undo, module.ProcessPoolExecutor, "submit", _submitted)


def _submitted(original: "Callable[..., Any]") -> "Callable[..., Any]":
    def submit(self: "Any", fn: "Any", /, *args: "Any", **kwargs: "Any") -> "Any":
        if not _core.active():
            return original(self, fn, *args, **kwargs)
        submitting.executor = Executor.table.get(id(self)) or Executor(self, _TYPE)
        try:
            return original(self, fn, *args, **kwargs)
        finally:
            submitting.executor = None

    return submit
