"""`Thread.join`: waiting for a thread to end. The entry's name is the name of that thread."""

from _thread import get_ident

from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """Record `Thread.join`."""
    put_around(undo, module.Thread, "join", (_before_join, _after_join))


def _is_over(thread: "Any") -> bool:
    handle = getattr(thread, "_handle", None)  # since Python 3.13
    return bool(handle.is_done() if handle is not None else thread._is_stopped)


def _before_join(thread: "Any") -> "tuple[Any, _core.Source, int] | None":
    if (
        not getattr(thread, "_initialized", False)
        or not thread._started.is_set()
        or thread.ident == get_ident()
    ):
        return None
    if _is_over(thread):
        _core.thread_over(thread.native_id)
        return None
    source = (JoinedThread.table.get(id(thread)) or JoinedThread(thread)).source
    return thread, source, _core.wait_begin(source)


def _after_join(kept: "tuple[Any, _core.Source, int]", _result: None, failed: bool) -> None:
    thread, source, token = kept
    over = _is_over(thread)
    if over:
        _core.thread_over(thread.native_id)
    ended = _core.ACQUIRED if over else _core.TIMED_OUT
    _core.wait_end(source, token, _core.INTERRUPTED if failed else ended)
