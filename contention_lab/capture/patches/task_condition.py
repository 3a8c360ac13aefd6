"""`asyncio.Condition`: waiting for the notify is coordination, taking the lock again is contention.

Both are recorded as the lock's; its own `acquire` ends the coordination.
"""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.beside import Beside
from contention_lab.capture.patches.task_lock import LockPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class Notifier(Beside):
    """Who last notified a condition: party, stack, and how many notifications that makes."""

    __slots__ = ("waker",)

    def __init__(self, condition: object) -> None:
        super().__init__(condition)
        self.waker = 0, 0, 0


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap waiting and notifying."""
    wrap(undo, module.Condition, "wait", _timed_wait)
    wrap(undo, module.Condition, "notify", _noted_notify)


def _timed_wait(
    original: "Callable[..., Coroutine[Any, Any, bool]]",
) -> "Callable[..., Coroutine[Any, Any, bool]]":
    async def wait(self: "Any") -> bool:
        task = _core.current_task() if _core.active() else None
        if task is None or not self.locked():
            return await original(self)
        notifier = Notifier.table.get(id(self)) or Notifier(self)
        notifier.waker = 0, 0, notifier.waker[2]
        permits = LockPermits.of(self._lock)
        is_again = task.woken == (permits.key, permits.since(task.party))
        began = _core.task_wait(
            permits.source, len(self._waiters), 0, _core.AGAIN if is_again else 0
        )
        outer, task.coordination = task.coordination, began
        _core.watch(permits.source, True)
        try:
            notified = await original(self)
        except BaseException as error:
            began.failed(error)
            raise
        finally:
            _core.watch(permits.source, False)
            task.coordination = outer
            task.woken = permits.key, permits.since(task.party)
        began.ended(*notifier.waker)
        return notified

    return wait


def _noted_notify(original: "Callable[..., None]") -> "Callable[..., None]":
    def notify(self: "Any", n: int = 1) -> None:
        if self._waiters and _core.active():
            notifier = Notifier.table.get(id(self)) or Notifier(self)
            number = notifier.waker[2] + 1
            notifier.waker = tasks.current_party(), _core.capture_stack(), number
        original(self, n)

    return notify
