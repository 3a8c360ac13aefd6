"""asyncio tasks as parties: who runs, what he is called, and what he waits for.

A task holds and waits like a thread, but its thread runs other tasks meanwhile; so it goes by an id
of its own. Code that runs outside of any task (a callback) goes by its thread.
"""

import sys

from contention_lab.capture.patches import recording
from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any, Final

    from contention_lab.capture.patches.task_wait import Wait

adoptable: "Final[set[CodeType]]" = set()
"""Code of the coroutines below, for `task_wait_for.py`."""

adopted: "Final[dict[int, Any]]" = {}
"""By the id of a coroutine that a helper task runs for another one: that one (Python 3.11)."""

_running_loop: "Callable[[], Any] | None" = None
_current_task: "Callable[[Any], Any] | None" = None


class Task(Beside):
    """One task.

    Attributes
    ----------
    party
        Its id in the trace.
    number
        The recording that has this id.
    coordination
        What its `Condition.wait` has begun, while it goes on.
    is_late
        It is being cancelled because a timeout has run out.
    deadline
        When `wait_for` will do that, in the loop's time; None for never.
    called_from
        Stack and site of its call of `wait_for`, while that goes on in a helper task; else zeros.
    woken
        What it last waited on a condition of, and since when it has had that since.
    """

    __slots__ = ("called_from", "coordination", "deadline", "is_late", "number", "party", "woken")

    def __init__(self, task: "Any") -> None:
        super().__init__(task)
        self.party = _core.party(_name(task))
        self.coordination: Wait | None = None
        self.is_late = False
        self.deadline: float | None = None
        self.called_from = 0, 0
        self.woken = 0, 0
        self.number = recording.number

    def outcome(self, error: BaseException) -> int:
        """Return what to call the end of a wait that `error` has ended."""
        if type(error) is not sys.modules["asyncio.exceptions"].CancelledError:
            return _core.INTERRUPTED
        if self.deadline is not None:
            loop = sys.modules["asyncio.events"]._get_running_loop()
            self.is_late = loop is not None and loop.time() >= self.deadline - 1e-3
        return _core.TIMED_OUT if self.is_late else _core.CANCELLED

    def stack(self) -> int:
        """Return the id of the stack of what it awaits; 0 if that cannot be told."""
        places = []
        task = self()
        try:
            coroutine = None if task is None else task.get_coro()
            while coroutine is not None and (frame := getattr(coroutine, "cr_frame", None)):
                places.append((frame.f_code, frame.f_lasti))
                coroutine = coroutine.cr_await
        except Exception:  # somebody's own kind of task
            return 0
        return _core.intern_stack(places[::-1])


def current() -> "Task | None":
    """Return the task that runs, None outside of one."""
    if _running_loop is None or _current_task is None:
        _find()
        return current()
    loop = _running_loop()
    task = None if loop is None else _current_task(loop)
    if task is None:
        return None
    if adopted:
        task = adopted.get(id(task.get_coro()), task)
    known = Task.table.get(id(task))
    return known if known is not None and known.number == recording.number else Task(task)


def current_party() -> int:
    """Return the id of the task that runs, of the thread outside of one."""
    task = current()
    return _core.current_party() if task is None else task.party


def _find() -> None:
    """Look asyncio's functions up, once: it is there when a task runs."""
    global _running_loop, _current_task
    module = sys.modules["asyncio.tasks"]
    _running_loop = sys.modules["asyncio.events"]._get_running_loop
    _current_task = module.current_task
    if sys.version_info < (3, 12):  # there it is a Python function that looks into a dictionary
        _current_task = module._current_tasks.get


def _name(task: "Any") -> str:
    try:
        name = str(task.get_name())
        coroutine = getattr(task.get_coro(), "__qualname__", "").rpartition("<locals>.")[2]
    except Exception:  # somebody's own kind of task
        return type(task).__qualname__
    return f"{name} {coroutine}" if coroutine and name.startswith("Task-") else name
