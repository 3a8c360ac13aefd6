"""`asyncio.Event`: waiting for somebody to set it."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.signals import Signal
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class EventSignal(Signal):
    """One event."""

    __slots__ = ()
    type_name = "asyncio.Event"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making, waiting and setting."""
    wrap(undo, module.Event, "__init__", _made)
    wrap(undo, module.Event, "wait", _timed_wait)
    wrap(undo, module.Event, "set", _noted_set)
    tasks.adoptable.add(module.Event.wait.__code__)


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "asyncio.Event") -> None:  # noqa: N807
        original(self)
        EventSignal(self)

    return __init__


def _timed_wait(
    original: "Callable[..., Coroutine[Any, Any, bool]]",
) -> "Callable[..., Coroutine[Any, Any, bool]]":
    async def wait(self: "Any") -> bool:
        if self._value or not _core.active():
            return await original(self)
        signal = EventSignal.of(self)
        began = _core.task_wait(signal.source, len(self._waiters), signal.awaited(self._waiters))
        try:
            is_set = await original(self)
        except BaseException as error:
            began.failed(error)
            raise
        began.ended(*signal.waker(self._waiters))
        return is_set

    return wait


def _noted_set(original: "Callable[..., None]") -> "Callable[..., None]":
    def set(self: "Any") -> None:  # noqa: A001
        if self._waiters and _core.active():
            EventSignal.of(self).wake(self._waiters)
        original(self)

    return set
