"""`asyncio.wait_for` up to Python 3.11, which runs what it waits for in a task of its own.

The lock is nevertheless its caller's, who will release it; and the helper task is cancelled either
because the time is over or because the caller is cancelled. Later versions use `asyncio.timeout`.
"""

import sys

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.probe_places import around_all
from contention_lab.capture.patches.probes import insert
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo

_PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "wait_for": (around_all("{adopts} @ (fut, timeout)", "{over} @ ()"),),
}


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch the whole of it."""
    if sys.version_info < (3, 12):
        insert(undo, module, _PLACES, _PROBES)


def _adopts(awaitable: "Any", timeout: float | None) -> "tuple[Any, int] | None":
    """Let what is about to run in another task be the caller's; return what undoes that."""
    task = _core.current_task()
    if task is None or id(getattr(awaitable, "cr_code", None)) not in tasks.adoptable:
        return None
    loop = sys.modules["asyncio.events"]._get_running_loop()
    tasks.adopted[id(awaitable)] = task()
    task.deadline = None if timeout is None else loop.time() + timeout
    task.called_stack, task.called_site = _core.capture_stack(), _core.capture_site()
    return task, id(awaitable)


def _over(adoption: "tuple[Any, int]") -> None:
    task, key = adoption
    del tasks.adopted[key]
    task.deadline = None
    task.called_stack = task.called_site = 0


_ADOPTS = _core.Probe(_adopts, keeps=_core.KEEPS_LAST)
_PROBES: "Final" = {"adopts": _ADOPTS, "over": _core.Probe(_over, begin=_ADOPTS)}
