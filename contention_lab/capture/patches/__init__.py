"""What `record` puts in the place of Python's own synchronisation.

A patch is one file with a function `install(undo)`; a new one is one line in `PATCHES`. Patches change
classes and module globals, never instances, and import nothing that the program has not imported: what
comes later is patched when it comes (`imports.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contention_lab.capture.undo import Undo

PATCHES: Final = ("thread_locks", "condition")
"""In the order of installation; removed in the reverse order."""


def install(undo: Undo) -> None:
    """Install every patch."""
    for name in PATCHES:
        import_module(f"{__name__}.{name}").install(undo)
