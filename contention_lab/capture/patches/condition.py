"""`threading.Condition`, and with it Event, Barrier, Queue and Future, which wait on one.

Waiting for a notify is coordination; taking the lock again afterwards is contention, which the lock
records itself. Whoever notifies goes down as the one who woke: see `native/condition.h`.

A condition inside something that records its waiting itself (a semaphore) is not recorded: one
operation of the program is one event.
"""

from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.permits import Permits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from contention_lab.capture.undo import Undo

inner: "dict[int, Callable[[], None]]" = {}
"""By the id of a condition inside something else: what that does before the condition waits."""


class WaitedFor(Permits):
    """A condition that somebody has waited for by way of a lock that is not its own; no permits.

    A waiter learns through `source` who woke him; where the condition's lock is not one of ours it
    is the condition's entry in the trace, too.
    """

    __slots__ = ()

    def __init__(self, condition: object) -> None:
        super().__init__(condition, "threading.Condition", late=True)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Record `Condition.wait` and `Condition.notify`."""
    _core.record_conditions(inner)
    for name in ("wait", "notify", "_is_owned"):
        put_around(undo, module.Condition, name, f"Condition.{name}", WaitedFor)
