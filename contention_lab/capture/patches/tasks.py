"""asyncio tasks as parties: what they are called, and how their waits can end.

Who runs is found by the core (`native/tasks.h`), in what asyncio itself keeps of that.
"""

import sys

from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.undo import Undo

adoptable: "Final[set[int]]" = set()
"""Ids of the code of the coroutines that wait for what is recorded, for `task_wait_for.py`."""

adopted: "Final[dict[int, Any]]" = {}
"""By the id of a coroutine that a helper task runs for another one: that one (Python 3.11)."""


class Task(Beside, _core.Task):
    """One task.

    Attributes
    ----------
    deadline
        When `wait_for` will cancel it, in the loop's time; None for never.
    woken
        What it last waited on a condition of, and since when it has had that since.
    """

    __slots__ = ("deadline", "woken")

    def __init__(self, task: "Any") -> None:
        super().__init__(task)
        self.forget()

    def forget(self) -> None:
        """Begin anew in another recording."""
        super().forget()
        task = self()
        self.party = 0 if task is None else _core.party(_name(task))
        self.coordination = None
        self.is_late = False
        self.deadline: float | None = None
        self.called_stack = self.called_site = 0
        self.woken = 0, 0

    def outcome(self, error: BaseException) -> int:
        """Return what to call the end of a wait that `error` has ended."""
        if type(error) is not sys.modules["asyncio.exceptions"].CancelledError:
            return _core.INTERRUPTED
        if self.deadline is not None:
            loop = sys.modules["asyncio.events"]._get_running_loop()
            self.is_late = loop is not None and loop.time() >= self.deadline - 1e-3
        return _core.TIMED_OUT if self.is_late else _core.CANCELLED


def install(undo: "Undo", module: "ModuleType") -> None:
    """Tell the core how asyncio says which task runs."""
    del undo  # nothing is changed
    if not hasattr(module, "current_task"):
        return  # in the middle of being imported: it comes by again at the end
    running_loop = sys.modules["asyncio.events"]._get_running_loop
    current = module.current_task
    if sys.version_info < (3, 12):  # there it is a Python function that looks into a dictionary
        current = module._current_tasks
    _core.use_asyncio(Task, running_loop, current, adopted)


def failed(wait: "_core.TaskWait") -> None:
    """Record that the exception being handled has ended a wait."""
    error = sys.exc_info()[1]
    if error is not None:
        wait.failed(error)


def current_party() -> int:
    """Return the id of the task that runs, of the thread outside of one."""
    task = _core.current_task()
    return _core.current_party() if task is None else task.party


def _name(task: "Any") -> str:
    try:
        name = str(task.get_name())
        coroutine = getattr(task.get_coro(), "__qualname__", "").rpartition("<locals>.")[2]
    except Exception:  # somebody's own kind of task
        return type(task).__qualname__
    return f"{name} {coroutine}" if coroutine and name.startswith("Task-") else name
