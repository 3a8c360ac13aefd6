"""`asyncio.timeout`: a wait that it cancels has timed out."""

from contention_lab.capture.patches.tasks import Task
from contention_lab.capture.patches.wrapping import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap what happens when the time is over."""
    wrap(undo, module.Timeout, "_on_timeout", _noted_timeout)


def _noted_timeout(original: "Callable[[Any], None]") -> "Callable[[Any], None]":
    def _on_timeout(self: "Any") -> None:
        task = None if self._task is None else Task.table.get(id(self._task))
        if task is not None:
            task.is_late = True
        original(self)

    return _on_timeout
