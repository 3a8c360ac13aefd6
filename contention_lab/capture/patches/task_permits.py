"""Permits that asyncio tasks take, and tasks that wait for them.

What is common to locks and semaphores of asyncio. A release, and an acquire that need not wait,
call into the core once (`native/task_wait.h`). Such an acquire is a line in asyncio, and done here
in the same way: one coroutine inside another would cost more than it does.
"""

from contention_lab.capture.patches.permits import Permits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

took, gives, blocks = _core.task_took, _core.task_gives, _core.task_blocks


class TaskPermits(Permits):
    """The permits of one lock or semaphore of tasks."""

    __slots__ = ()

    @classmethod
    def met(cls, thing: "Any") -> "Self":
        """Return those of a thing that was made earlier."""
        return cls(thing, late=True)  # type: ignore[call-arg]


def is_of(module: str, function: "Callable[..., Any]") -> bool:
    """Return whether a function is the module's own, and not what somebody has put in its place."""
    return getattr(function, "__globals__", {}).get("__name__") == module
