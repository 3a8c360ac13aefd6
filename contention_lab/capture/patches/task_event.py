"""`asyncio.Event`: waiting for somebody to set it."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.probe_places import around_await, at_end, before_assignment
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.signals import Signal
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo

_PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "__init__": (at_end("{made} @ self"),),
    "wait": (around_await("{begins} @ self", "{failed} @ ()", "{over} @ self"),),
    "set": (before_assignment("if self._waiters:\n {wakes} @ self"),),
}


class EventSignal(Signal):
    """One event."""

    __slots__ = ()
    type_name = "asyncio.Event"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch making, waiting and setting."""
    if insert(undo, module.Event, _PLACES, _PROBES):
        tasks.adoptable.add(id(module.Event.wait.__code__))


def _begins(event: "Any") -> "_core.TaskWait":
    """Begin a wait of a task that is among the waiters already."""
    signal = EventSignal.of(event)
    return _core.task_wait(signal.source, len(event._waiters) - 1, signal.awaited(event._waiters))


def _over(wait: "_core.TaskWait", event: "Any") -> None:
    wait.ended(*EventSignal.of(event).waker(event._waiters))


def _wakes(event: "Any") -> None:
    EventSignal.of(event).wake(event._waiters)


_BEGINS = _core.Probe(_begins, keeps=_core.KEEPS_LAST)
_PROBES: "Final" = {
    "made": _core.Probe(EventSignal),
    "begins": _BEGINS,
    "failed": _core.Probe(tasks.failed, begin=_BEGINS),
    "over": _core.Probe(_over, begin=_BEGINS),
    "wakes": _core.Probe(_wakes),
}
