"""`multiprocessing.Condition`, and with it Event and Barrier, which wait on one.

Waiting for the notify is coordination; taking the lock again afterwards is contention. The three
semaphores inside are not recorded. Who notifies is in another process, as a rule, and not known.
"""

from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.process_lock import permits_of
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


def install(undo: "Undo", module: "ModuleType") -> None:
    """Follow what binds the methods, and waiting."""
    put_around(undo, module.Condition, "_make_methods", (None, _made))
    put_around(undo, module.Condition, "wait", (_before_wait, _after_wait))
    put_around(undo, module.Event, "__init__", (None, _made_flag))


def _silence(*semaphores: "Any") -> None:
    for semaphore in semaphores:
        permits = permits_of(semaphore)
        if permits is not None:
            permits.silent = True


def _made(condition: "Any", _result: None, failed: bool) -> None:
    if not failed:
        _silence(condition._sleeping_count, condition._woken_count, condition._wait_semaphore)


def _made_flag(event: "Any", _result: None, failed: bool) -> None:
    if not failed:
        _silence(event._flag)


def _before_wait(condition: "Any") -> "tuple[_core.Source, int] | None":
    lock = condition._lock
    permits = permits_of(lock)
    if permits is None or permits.silent or not lock._semlock._is_mine():
        return None
    return permits.source, _core.wait_begin(permits.source)


def _after_wait(kept: "tuple[_core.Source, int]", notified: bool, failed: bool) -> None:
    source, token = kept
    ended = _core.ACQUIRED if notified else _core.TIMED_OUT
    _core.wait_end(source, token, _core.INTERRUPTED if failed else ended)
