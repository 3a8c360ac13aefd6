"""`threading.Lock` and `RLock`, under every name that modules already have for them.

Locks made from now on are ours. Those that exist stay as they are (see `existing.py`). The locks inside
`Condition.wait` and `Thread` stay CPython's own: they are how a thread sleeps, not what it sleeps for, so
`threading._allocate_lock` is not touched.
"""

from __future__ import annotations

import _thread
import sys
import threading
from typing import TYPE_CHECKING, Final

from contention_lab.native import _core

if TYPE_CHECKING:
    from contention_lab.capture.undo import Undo

PRIVATE: Final = frozenset({"_allocate_lock", "_set_sentinel"})
"""Names in `threading` for locks that only make threads sleep."""


def install(undo: Undo) -> None:
    """Replace the lock types."""
    stand_ins = {
        id(_thread.allocate_lock): _core.PlainLock,
        id(_thread.LockType): _core.PlainLock,
        id(_thread.RLock): _core.PlainRLock,
    }
    for name in ("allocate_lock", "allocate", "LockType", "lock", "RLock"):
        if id(getattr(_thread, name, None)) in stand_ins:
            undo.set(_thread, name, stand_ins[id(getattr(_thread, name))])
    for module in list(sys.modules.values()):
        if module is _thread or module is None or not isinstance(module, type(sys)):
            continue
        for name, value in list(vars(module).items()):
            if id(value) not in stand_ins or (module is threading and name in PRIVATE):
                continue
            undo.set(module, name, stand_ins[id(value)])
