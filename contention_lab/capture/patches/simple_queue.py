"""`queue.SimpleQueue`, which is a C type: a subclass of it stands in under every name.

`isinstance(queue, SimpleQueue)` stays true for queues made during the recording, whichever of the
two types is asked for. Idle workers of a ThreadPoolExecutor wait in one.
"""

from contention_lab.capture.patches.names import replace_names
from contention_lab.capture.patches.wrapping import dressed
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo

_stand_ins: "dict[int, tuple[type, type]]" = {}
_TYPE = type(lambda: None)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Replace the type by its stand-in."""
    original = module.SimpleQueue
    if id(original) not in _stand_ins:
        _stand_ins[id(original)] = original, _stand_in(original, module.Empty)
    replace_names(undo, [_stand_ins[id(original)]])


def _stand_in(original: "Any", empty: type[Exception]) -> type:
    put, get, is_empty = original.put, original.get, original.empty

    class SimpleQueue(original):  # type: ignore[misc]
        __slots__ = ("_contention_lab_idle", "_contention_lab_source")

        def __new__(cls, *args: "Any", **kwargs: "Any") -> "Any":
            self = original.__new__(cls, *args, **kwargs)
            self._contention_lab_source = _core.Source("queue.SimpleQueue")
            self._contention_lab_idle = []
            return self

        def put(self, item: "Any", block: bool = True, timeout: float | None = None) -> None:
            if self._contention_lab_idle:
                _core.wake(self._contention_lab_source)
            put(self, item, block, timeout)

        def get(self, block: bool = True, timeout: float | None = None) -> "Any":
            if not block or not _core.active():
                return get(self, block, timeout)
            if not is_empty(self):
                if timeout is not None:
                    return get(self, block, timeout)
                try:
                    return get(self, False)
                except empty:  # another thread was faster
                    pass
            source = self._contention_lab_source
            token = _core.wait_begin(source)
            self._contention_lab_idle.append(None)
            outcome = _core.INTERRUPTED
            try:
                item = get(self, block, timeout)
                outcome = _core.ACQUIRED
            except empty:
                outcome = _core.TIMED_OUT
                raise
            finally:
                self._contention_lab_idle.pop()
                _core.wait_end(source, token, outcome)
            return item

        def __reduce_ex__(self, protocol: "Any") -> "Any":
            if type(self) is SimpleQueue:
                raise TypeError(f"cannot pickle '{original.__module__}.SimpleQueue' object")
            return original.__reduce_ex__(self, protocol)

    for name, value in [*vars(SimpleQueue).items()]:
        if type(value) is _TYPE and hasattr(original, name):
            dressed(value, getattr(original, name))
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(SimpleQueue, name, getattr(original, name))
    return SimpleQueue
