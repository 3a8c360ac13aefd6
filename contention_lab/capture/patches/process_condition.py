"""`multiprocessing.Condition`, and with it Event and Barrier, which wait on one.

Waiting for the notify is coordination; taking the lock again afterwards is contention. The three
semaphores inside are not recorded. Who notifies is in another process, as a rule, and not known.
"""

from contention_lab.capture.patches.process_lock import meter_of
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap what binds the methods, and waiting."""
    wrap(undo, module.Condition, "_make_methods", _quiet)
    wrap(undo, module.Condition, "wait", _timed_wait)
    wrap(undo, module.Event, "__init__", _quiet_flag)


def _silence(*semaphores: "Any") -> None:
    for semaphore in semaphores:
        meter = meter_of(semaphore)
        if meter is not None:
            meter.permits = None


def _quiet(original: "Callable[[Any], None]") -> "Callable[[Any], None]":
    def _make_methods(self: "Any") -> None:
        original(self)
        _silence(self._sleeping_count, self._woken_count, self._wait_semaphore)

    return _make_methods


def _quiet_flag(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "Any", *, ctx: "Any") -> None:  # noqa: N807
        original(self, ctx=ctx)
        _silence(self._flag)

    return __init__


def _timed_wait(original: "Callable[..., bool]") -> "Callable[..., bool]":
    def wait(self: "Any", timeout: float | None = None) -> bool:
        meter = meter_of(self._lock)
        if meter is None or meter.permits is None or not self._lock._semlock._is_mine():
            return original(self, timeout)
        source = meter.permits.source
        token = _core.wait_begin(source)
        outcome = _core.INTERRUPTED
        try:
            notified = original(self, timeout)
            outcome = _core.ACQUIRED if notified else _core.TIMED_OUT
        finally:
            _core.wait_end(source, token, outcome)
        return notified

    return wait
