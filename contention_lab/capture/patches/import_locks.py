"""importlib's locks, one for each module that is being imported: their name is the module.

Most modules are imported by one thread alone. A lock is recorded from when a second thread comes
for the same module; the first one's hold is noted from its start, with the line that imports. What
importlib does against deadlocks is not touched.
"""

from _thread import get_ident

from contention_lab.capture.patches.sleeping import ORIGINALS
from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class ImportLock(ThreadPermits):
    """The lock of one module.

    Attributes
    ----------
    depth
        How often its owner has it.
    contended
        A second thread has come for it.
    """

    __slots__ = ("contended", "depth")

    def __init__(self, lock: "Any") -> None:
        super().__init__(lock, "import lock", lock.name, late=True)
        self.contended = False

    def forget(self) -> None:
        """Begin anew."""
        super().forget()
        self.depth = 0

    def wait(self) -> None:
        """Note that this thread is about to wait."""
        if not self.contended:
            self.contended = True
            _core.count(self.source, self.held, 0, 0)
        super().wait()

    def acquired(self, nested: bool) -> None:
        """Note that this thread has it, or has it once more."""
        self.depth += 1
        if nested and self.contended:
            _core.count(self.source, 0, 0, 1)
        elif not nested and self.contended:
            self.end(_core.ACQUIRED)
        elif not nested:
            self.take(False)

    def released(self, end_ns: int) -> None:
        """Note that its owner has given it up once."""
        self.depth -= 1
        if self.depth > 0:
            return
        if self.contended:
            self.give(end_ns)
        self.drop()


def install(undo: "Undo", module: "Any") -> None:
    """Wrap acquiring and releasing, and keep the locks inside what they are."""
    wrap(undo, module._ModuleLock, "acquire", _acquired)
    wrap(undo, module._ModuleLock, "release", _released)
    if module._thread.allocate_lock is ORIGINALS["allocate_lock"]:
        undo.set(module, "_thread", _Originals(module._thread))


class _Originals:
    """The module `_thread` as it was, for the import system."""

    def __init__(self, module: "ModuleType") -> None:
        vars(self).update(vars(module))


def _acquired(original: "Callable[[Any], bool]") -> "Callable[[Any], bool]":
    def acquire(self: "Any") -> bool:
        if not _core.active():
            return original(self)
        record = ImportLock.of(self)
        nested = self.owner == get_ident()
        if self.owner is not None and not nested:
            record.wait()
        try:
            taken = original(self)
        except BaseException:
            record.end(_core.INTERRUPTED)
            raise
        record.acquired(nested)
        return taken

    return acquire


def _released(original: "Callable[[Any], None]") -> "Callable[[Any], None]":
    def release(self: "Any") -> None:
        end_ns = _core.now()
        original(self)
        if end_ns and id(self) in ImportLock.table:
            ImportLock.of(self).released(end_ns)

    return release
