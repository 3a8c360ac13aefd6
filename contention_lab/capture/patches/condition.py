"""`threading.Condition`, and with it Event, Semaphore, Barrier, Queue and Future, which wait on one.

Waiting for a notify is coordination; taking the lock again afterwards is contention, which the lock
records itself. Whoever notifies goes down as the one who woke.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import TYPE_CHECKING, Any

from contention_lab.native import _core

if TYPE_CHECKING:
    from contention_lab.capture.undo import Undo


def install(undo: Undo) -> None:
    """Wrap `Condition.wait` and `Condition.notify`."""
    original_wait = threading.Condition.wait
    original_notify = threading.Condition.notify

    @wraps(original_wait)
    def wait(self: threading.Condition, timeout: float | None = None) -> Any:
        lock = self._lock  # type: ignore[attr-defined]
        token = _core.wait_begin(lock)
        if not token:
            return original_wait(self, timeout)
        outcome = _core.INTERRUPTED
        try:
            notified = original_wait(self, timeout)
            outcome = _core.ACQUIRED if notified else _core.TIMED_OUT
        finally:
            _core.wait_end(lock, token, outcome)
        return notified

    @wraps(original_notify)
    def notify(self: threading.Condition, n: int = 1) -> None:
        if self._waiters:  # type: ignore[attr-defined]
            _core.wake(self._lock)  # type: ignore[attr-defined]
        original_notify(self, n)

    undo.set(threading.Condition, "wait", wait)
    undo.set(threading.Condition, "notify", notify)
