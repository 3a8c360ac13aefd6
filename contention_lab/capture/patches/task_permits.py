"""Permits that asyncio tasks take, and tasks that wait for them.

What is common to locks and semaphores of asyncio. Their own code calls into the core where it has
taken a permit without a wait, around its wait, and where it gives one back (`probes.py`).
"""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.permits import Permits
from contention_lab.capture.patches.probe_places import (
    around_await,
    at_end,
    before_assignment,
    before_early_return,
)
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Self

    from contention_lab.capture.patches.probe_places import Place

PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "__init__": (at_end("{made} @ self"),),
    "acquire": (
        before_early_return("{took} @ self"),
        around_await("{blocks} @ self", "{failed} @ ()", "{over} @ ()"),
    ),
    "release": (before_assignment("{gives} @ self"),),
}
"""By method: where what happens."""


class TaskPermits(Permits):
    """The permits of one lock or semaphore of tasks."""

    __slots__ = ()

    @classmethod
    def met(cls, thing: "Any") -> "Self":
        """Return those of a thing that was made earlier."""
        return cls(thing, late=True)  # type: ignore[call-arg]


def probes_of(cls: "type[TaskPermits]") -> "dict[str, _core.Probe]":
    """Return what to do at the places, for the things that have permits of this class."""
    blocks = _core.Probe(_core.task_blocks, cls, keeps=_core.KEEPS_LAST)
    return {
        "made": _core.Probe(cls),
        "took": _core.Probe(_core.task_took, cls),
        "blocks": blocks,
        "failed": _core.Probe(tasks.failed, begin=blocks),
        "over": _core.Probe(_core.TaskWait.ended, begin=blocks),
        "gives": _core.Probe(_core.task_gives, cls),
    }
