"""`asyncio.Condition`: waiting for the notify is coordination, taking the lock again is contention.

Both are recorded as the lock's; its own `acquire` ends the coordination.
"""

import sys

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.beside import Beside
from contention_lab.capture.patches.probe_places import around_rest, at_start
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.task_lock import LockPermits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo

_PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "wait": (around_rest("{begins} @ self", "{failed} @ ()", "{over} @ ()"),),
    "notify": (at_start("if self._waiters:\n {notifies} @ self"),),
}


class Notifier(Beside):
    """Who last notified a condition: party, stack, and how many notifications that makes."""

    __slots__ = ("waker",)

    def __init__(self, condition: object) -> None:
        super().__init__(condition)
        self.waker = 0, 0, 0


class Waiting:
    """One `wait`, while it goes on: until the task has the lock again."""

    __slots__ = ("notifier", "outer", "permits", "task", "wait")

    def __init__(self, task: "Any", condition: "Any") -> None:
        self.task = task
        self.notifier = Notifier.table.get(id(condition)) or Notifier(condition)
        self.notifier.waker = 0, 0, self.notifier.waker[2]
        self.permits = permits = LockPermits.of(condition._lock)
        is_again = task.woken == (permits.key, permits.since(task.party))
        self.wait = _core.task_wait(
            permits.source, len(condition._waiters), 0, _core.AGAIN if is_again else 0
        )
        self.outer, task.coordination = task.coordination, self.wait
        _core.watch(permits.source, True)

    def is_over(self) -> None:
        """Leave the task as it was."""
        _core.watch(self.permits.source, False)
        self.task.coordination = self.outer
        self.task.woken = self.permits.key, self.permits.since(self.task.party)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Watch waiting and notifying."""
    insert(undo, module.Condition, _PLACES, _PROBES)


def _begins(condition: "Any") -> Waiting | None:
    task = _core.current_task()
    return None if task is None else Waiting(task, condition)


def _failed(waiting: Waiting) -> None:
    error = sys.exc_info()[1]
    if error is not None:
        waiting.wait.failed(error)
    waiting.is_over()


def _over(waiting: Waiting) -> None:
    waiting.is_over()
    waiting.wait.ended(*waiting.notifier.waker)


def _notifies(condition: "Any") -> None:
    notifier = Notifier.table.get(id(condition)) or Notifier(condition)
    number = notifier.waker[2] + 1
    notifier.waker = tasks.current_party(), _core.capture_stack(), number


_BEGINS = _core.Probe(_begins, keeps=_core.KEEPS_LAST)
_PROBES: "Final" = {
    "begins": _BEGINS,
    "failed": _core.Probe(_failed, begin=_BEGINS),
    "over": _core.Probe(_over, begin=_BEGINS),
    "notifies": _core.Probe(_notifies),
}
