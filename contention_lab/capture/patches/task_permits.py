"""Permits that asyncio tasks take, and tasks that wait for them.

What is common to locks and semaphores of asyncio. An acquire that need not wait and a release call
into the core once (`native/task_wait.h`), and are otherwise the program's own.
"""

from contention_lab.capture.patches.permits import Permits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Self

took, gives = _core.task_took, _core.task_gives


class TaskPermits(Permits):
    """The permits of one lock or semaphore of tasks."""

    __slots__ = ()

    @classmethod
    def met(cls, thing: "Any") -> "Self":
        """Return those of a thing that was made earlier."""
        return cls(thing, late=True)  # type: ignore[call-arg]


async def blocked(
    cls: type[TaskPermits], thing: "Any", original: "Callable[[Any], Coroutine[Any, Any, bool]]"
) -> bool:
    """Acquire a permit that is not to be had at once: record the wait."""
    wait = _core.task_blocks(cls, thing)
    if wait is None:
        return await original(thing)
    try:
        taken = await original(thing)
    except BaseException as error:
        wait.failed(error)
        raise
    wait.ended()
    return taken
