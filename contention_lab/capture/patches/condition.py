"""`threading.Condition`, and with it Event, Barrier, Queue and Future, which wait on one.

Waiting for a notify is coordination; taking the lock again afterwards is contention, which the lock
records itself. Whoever notifies goes down as the one who woke.

A condition inside something that records its waiting itself (a semaphore) is not recorded: one
operation of the program is one event.
"""

from contention_lab.capture.patches.beside import Beside
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import ModuleType

    from contention_lab.capture.undo import Undo

inner: "dict[int, Callable[[], None]]" = {}
"""By the id of a condition inside something else: what that does before the condition waits."""

_OURS = (_core.PlainLock, _core.PlainRLock, _core.Mutex)
_LOOKABLE = (_core.PlainLock, _core.Mutex)


class WaitedFor(Beside):
    """A condition that somebody has waited for.

    Attributes
    ----------
    source
        Through which a waiter learns who woke him; where the condition's lock is not ours, the
        condition's entry in the trace, too.
    """

    __slots__ = ("source",)

    def __init__(self, condition: object) -> None:
        super().__init__(condition)
        self.source = _core.Source("threading.Condition", None, True)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap `Condition.wait` and `Condition.notify`."""
    wrap(undo, module.Condition, "wait", _timed_wait)
    wrap(undo, module.Condition, "notify", _noted_notify)
    wrap(undo, module.Condition, "_is_owned", _looked)


def _timed_wait(original: "Callable[..., bool]") -> "Callable[..., bool]":
    def wait(self: "threading.Condition", timeout: float | None = None) -> bool:
        outer = inner.get(id(self))
        if outer is not None:
            if timeout is None or timeout > 0:
                outer()
            return original(self, timeout)
        if not _core.active() or not self._is_owned():  # type: ignore[attr-defined]
            return original(self, timeout)
        woken_by = (WaitedFor.table.get(id(self)) or WaitedFor(self)).source
        lock = self._lock  # type: ignore[attr-defined]
        source = lock if issubclass(type(lock), _OURS) else woken_by
        token = _core.wait_begin(source)
        outcome = _core.INTERRUPTED
        try:
            notified = original(self, timeout)
            outcome = _core.ACQUIRED if notified else _core.TIMED_OUT
        finally:
            _core.wait_end(source, token, outcome, woken_by)
        return notified

    return wait


def _looked(original: "Callable[..., bool]") -> "Callable[..., bool]":
    def _is_owned(self: "threading.Condition") -> bool:
        """Tell by a look where the original tries to acquire, which is no try of the program's."""
        lock = self._lock  # type: ignore[attr-defined]
        return lock.locked() if type(lock) in _LOOKABLE else original(self)

    return _is_owned


def _noted_notify(original: "Callable[..., None]") -> "Callable[..., None]":
    def notify(self: "threading.Condition", n: int = 1) -> None:
        if self._waiters:  # type: ignore[attr-defined]
            known = WaitedFor.table.get(id(self))
            if known is not None:
                _core.wake(known.source)
        original(self, n)

    return notify
