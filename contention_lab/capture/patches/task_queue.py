"""`asyncio.Queue`: waiting for an item or for room.

A `get` or `put` that waits is one event.
"""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.signals import Signal
from contention_lab.capture.patches.task_wait import Wait
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo

_TYPE = "asyncio.Queue"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making, waiting and waking."""
    wrap(undo, module.Queue, "__init__", _made)
    wrap(undo, module.Queue, "get", _timed_get)
    wrap(undo, module.Queue, "put", _timed_put)
    wrap(undo, module.Queue, "_wakeup_next", _noted_wakeup)
    tasks.adoptable.update({module.Queue.get.__code__, module.Queue.put.__code__})


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "Any", maxsize: int = 0) -> None:  # noqa: N807
        original(self, maxsize)
        Signal(self, _TYPE)

    return __init__


def _timed_get(
    original: "Callable[..., Coroutine[Any, Any, Any]]",
) -> "Callable[..., Coroutine[Any, Any, Any]]":
    async def get(self: "Any") -> "Any":
        task = tasks.current() if _core.active() and self.empty() else None
        if task is None:
            return await original(self)
        signal = Signal.of(self, _TYPE)
        began = Wait(signal.source, task, len(self._getters), awaited=signal.awaited(self._getters))
        try:
            item = await original(self)
        except BaseException as error:
            began.failed(error)
            raise
        began.record(_core.ACQUIRED, signal.waker(self._getters))
        return item

    return get


def _timed_put(
    original: "Callable[..., Coroutine[Any, Any, None]]",
) -> "Callable[..., Coroutine[Any, Any, None]]":
    async def put(self: "Any", item: "Any") -> None:
        task = tasks.current() if _core.active() and self.full() else None
        if task is None:
            return await original(self, item)
        signal = Signal.of(self, _TYPE)
        began = Wait(signal.source, task, len(self._putters), awaited=signal.awaited(self._putters))
        try:
            await original(self, item)
        except BaseException as error:
            began.failed(error)
            raise
        began.record(_core.ACQUIRED, signal.waker(self._putters))
        return None

    return put


def _noted_wakeup(original: "Callable[..., None]") -> "Callable[..., None]":
    def _wakeup_next(self: "Any", waiters: "deque[Any]") -> None:
        if waiters and _core.active():
            Signal.of(self, _TYPE).wake(waiters)
        original(self, waiters)

    return _wakeup_next
