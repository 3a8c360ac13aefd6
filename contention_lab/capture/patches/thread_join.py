"""`Thread.join`: waiting for a thread to end. The entry's name is the name of that thread."""

from _thread import get_ident

from contention_lab.capture.patches.beside import Beside
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class JoinedThread(Beside):
    """A thread that somebody waited for, and its entry in the trace."""

    __slots__ = ("source",)

    def __init__(self, thread: "Any") -> None:
        super().__init__(thread)
        self.source = _core.Source("threading.Thread", thread._name)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap `Thread.join`."""
    wrap(undo, module.Thread, "join", _timed_join)


def _is_over(thread: "Any") -> bool:
    handle = getattr(thread, "_handle", None)  # since Python 3.13
    return bool(handle.is_done() if handle is not None else thread._is_stopped)


def _timed_join(original: "Callable[..., None]") -> "Callable[..., None]":
    def join(self: "threading.Thread", timeout: float | None = None) -> None:
        if (
            not _core.active()
            or not getattr(self, "_initialized", False)
            or not self._started.is_set()  # type: ignore[attr-defined]
            or self.ident == get_ident()
            or _is_over(self)
        ):
            return original(self, timeout)
        record = JoinedThread.table.get(id(self)) or JoinedThread(self)
        token = _core.wait_begin(record.source)
        outcome = _core.INTERRUPTED
        try:
            original(self, timeout)
            outcome = _core.ACQUIRED if _is_over(self) else _core.TIMED_OUT
        finally:
            _core.wait_end(record.source, token, outcome)
        return None

    return join
