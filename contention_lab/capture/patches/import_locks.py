"""importlib's locks, one for each module that is being imported: their name is the module.

Most modules are imported by one thread alone. A lock is recorded from when a second thread comes
for the same module; the first one's hold is noted from its start, with the line that imports. What
importlib does against deadlocks is not touched.
"""

from _thread import get_ident

from contention_lab.capture.patches import imports
from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.sleeping import ORIGINALS
from contention_lab.capture.patches.thread_permits import ThreadPermits
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """Follow acquiring and releasing, and keep the locks inside what they are."""
    put_around(undo, module._ModuleLock, "acquire", (_before_acquire, _after_acquire))
    imports.released["import_locks"] = _released
    if module._thread.allocate_lock is ORIGINALS["allocate_lock"]:
        undo.set(module, "_thread", _Originals(module._thread))


class _Originals:
    """The module `_thread` as it was, for the import system."""

    def __init__(self, module: "ModuleType") -> None:
        vars(self).update(vars(module))


def _before_acquire(lock: "Any") -> "tuple[ImportLock, bool]":
    record = ImportLock.of(lock)
    nested = lock.owner == get_ident()
    if lock.owner is not None and not nested:
        record.wait()
    return record, nested


def _after_acquire(kept: "tuple[ImportLock, bool]", _taken: object, failed: bool) -> None:
    record, nested = kept
    if failed:
        record.end(_core.INTERRUPTED)
    else:
        record.acquired(nested)


def _released(lock: "Any", end_ns: int) -> None:
    if end_ns and id(lock) in ImportLock.table:
        ImportLock.of(lock).released(end_ns)
