"""The locks that only make a thread sleep stay CPython's own.

`Condition.wait` blocks on a lock of its own that nobody else contends for; what is slept for is
recorded by `condition.py`. A `threading` that is imported while a recording goes on must get the
original, too.
"""

import _thread

from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Final

    from contention_lab.capture.undo import Undo

KEEP: "Final" = frozenset({("threading", "_allocate_lock")})
"""Module and variable that keep what they have."""

ORIGINALS: "Final" = {"allocate_lock": _thread.allocate_lock, "RLock": _thread.RLock}
"""What `_thread` had when this package was first imported."""


def install(undo: "Undo", module: "ModuleType") -> None:
    """Give `threading` the original, if it was imported after the lock types had been replaced."""
    del undo  # it is what it should have had in the first place
    if module._allocate_lock is _core.allocate_lock:
        module._allocate_lock = ORIGINALS["allocate_lock"]  # type: ignore[attr-defined]
