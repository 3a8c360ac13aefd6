"""`asyncio.timeout`: a wait that it cancels has timed out."""

from contention_lab.capture.patches.probe_places import before_assignment
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.tasks import Task
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo

_PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "_on_timeout": (before_assignment("{late} @ self"),),
}


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch what happens when the time is over."""
    insert(undo, module.Timeout, _PLACES, _PROBES)


def _late(timeout: "Any") -> None:
    """Note, before the cancelled task runs, that the time of a timeout is over."""
    task = None if timeout._task is None else Task.table.get(id(timeout._task))
    if task is not None:
        task.is_late = True


_PROBES: "Final" = {"late": _core.Probe(_late)}
