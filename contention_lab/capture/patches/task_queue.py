"""`asyncio.Queue`: waiting for an item or for room.

A `get` or `put` that waits is one event, however often it is woken in vain.
"""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.probe_places import around_loop, at_end, at_start
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.signals import Signal
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo

_PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "__init__": (at_end("{made} @ self"),),
    "get": (around_loop("{gets} @ self", "{failed_get} @ ()", "{got} @ self"),),
    "put": (around_loop("{puts} @ self", "{failed_put} @ ()", "{has_put} @ self"),),
    "_wakeup_next": (at_start("if waiters:\n {wakes} @ (self, waiters)"),),
}


class QueueSignal(Signal):
    """One queue."""

    __slots__ = ()
    type_name = "asyncio.Queue"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch making, waiting and waking."""
    if insert(undo, module.Queue, _PLACES, _PROBES):
        tasks.adoptable.add(id(module.Queue.get.__code__))
        tasks.adoptable.add(id(module.Queue.put.__code__))


def _gets(queue: "Any") -> "_core.TaskWait":
    """Begin a wait for an item, of a task that is among those who get already."""
    return _begins(QueueSignal.of(queue), queue._getters, 0)


def _puts(queue: "Any") -> "_core.TaskWait":
    """Begin a wait for room, of a task that is among those who put already."""
    return _begins(QueueSignal.of(queue), queue._putters, _core.ROOM)


def _begins(signal: QueueSignal, waiters: "deque[Any]", flags: int) -> "_core.TaskWait":
    return _core.task_wait(signal.source, len(waiters) - 1, signal.awaited(waiters), flags)


def _got(wait: "_core.TaskWait", queue: "Any") -> None:
    wait.ended(*QueueSignal.of(queue).waker(queue._getters))


def _has_put(wait: "_core.TaskWait", queue: "Any") -> None:
    wait.ended(*QueueSignal.of(queue).waker(queue._putters))


def _wakes(queue: "Any", waiters: "deque[Any]") -> None:
    QueueSignal.of(queue).wake(waiters)


_GETS = _core.Probe(_gets, keeps=_core.KEEPS_FIRST)
_PUTS = _core.Probe(_puts, keeps=_core.KEEPS_FIRST)
_PROBES: "Final" = {
    "made": _core.Probe(QueueSignal),
    "gets": _GETS,
    "failed_get": _core.Probe(tasks.failed, begin=_GETS),
    "got": _core.Probe(_got, begin=_GETS),
    "puts": _PUTS,
    "failed_put": _core.Probe(tasks.failed, begin=_PUTS),
    "has_put": _core.Probe(_has_put, begin=_PUTS),
    "wakes": _core.Probe(_wakes),
}
