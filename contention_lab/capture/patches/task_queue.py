"""`asyncio.Queue`: waiting for an item or for room.

A `get` or `put` that waits is one event. What need not wait is done here as asyncio does it.
"""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.signals import Signal
from contention_lab.capture.patches.task_permits import is_of
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class QueueSignal(Signal):
    """One queue."""

    __slots__ = ()
    type_name = "asyncio.Queue"


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
        QueueSignal(self)

    return __init__


def _timed_get(
    original: "Callable[..., Coroutine[Any, Any, Any]]",
) -> "Callable[..., Coroutine[Any, Any, Any]]":
    is_asyncios = is_of("asyncio.queues", original)

    async def get(self: "Any") -> "Any":
        if not self.empty():
            return self.get_nowait() if is_asyncios else await original(self)
        if not _core.active():
            return await original(self)
        signal = QueueSignal.of(self)
        began = _core.task_wait(signal.source, len(self._getters), signal.awaited(self._getters))
        try:
            item = await original(self)
        except BaseException as error:
            began.failed(error)
            raise
        began.ended(*signal.waker(self._getters))
        return item

    return get


def _timed_put(
    original: "Callable[..., Coroutine[Any, Any, None]]",
) -> "Callable[..., Coroutine[Any, Any, None]]":
    is_asyncios = is_of("asyncio.queues", original)

    async def put(self: "Any", item: "Any") -> None:
        if is_asyncios and not self.full():
            self.put_nowait(item)
            return None
        if not self.full() or not _core.active():
            return await original(self, item)
        signal = QueueSignal.of(self)
        awaited = signal.awaited(self._putters)
        began = _core.task_wait(signal.source, len(self._putters), awaited, _core.ROOM)
        try:
            await original(self, item)
        except BaseException as error:
            began.failed(error)
            raise
        began.ended(*signal.waker(self._putters))
        return None

    return put


def _noted_wakeup(original: "Callable[..., None]") -> "Callable[..., None]":
    def _wakeup_next(self: "Any", waiters: "deque[Any]") -> None:
        if waiters and _core.active():
            QueueSignal.of(self).wake(waiters)
        original(self, waiters)

    return _wakeup_next
