"""`asyncio.wait_for` up to Python 3.11, which runs what it waits for in a task of its own.

The lock is nevertheless its caller's, who will release it; and the helper task is cancelled either
because the time is over or because the caller is cancelled. Later versions use `asyncio.timeout`.
"""

import sys

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.names import replace_names
from contention_lab.capture.patches.wrapping import wrapper_of
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


def install(undo: "Undo", module: "ModuleType") -> None:
    """Replace the function under every name."""
    if sys.version_info < (3, 12):
        replace_names(undo, [(module.wait_for, wrapper_of(module.wait_for, _adopting))])


def _adopting(
    original: "Callable[..., Coroutine[Any, Any, Any]]",
) -> "Callable[..., Coroutine[Any, Any, Any]]":
    async def wait_for(fut: "Any", timeout: float | None) -> "Any":
        task = _core.current_task() if _core.active() else None
        if task is None or getattr(fut, "cr_code", None) not in tasks.adoptable:
            return await original(fut, timeout)
        loop = sys.modules["asyncio.events"]._get_running_loop()
        tasks.adopted[id(fut)] = task()
        task.deadline = None if timeout is None else loop.time() + timeout
        task.called_stack, task.called_site = _core.capture_stack(), _core.capture_site()
        try:
            return await original(fut, timeout)
        finally:
            del tasks.adopted[id(fut)]
            task.deadline = None
            task.called_stack = task.called_site = 0

    return wait_for
