"""Patching modules when they come, without a trace in the import system.

After a module has been executed, whoever imported it releases its import lock: a method of a Python
class, called once for each import that has to load something. That is where we look whether the
module is one to patch; `sys.meta_path`, `__import__` and tracebacks of failing imports stay as they
are. A module that is executed anew (`importlib.reload`) comes by again.
"""

import sys

from contention_lab.capture.patches import recording
from contention_lab.capture.patches.around import put_around
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from contention_lab.capture.undo import Undo

_waiting: "dict[str, Callable[[], None]]" = {}
"""By module, what to do when it has been imported."""

released: "dict[str, Callable[[Any, int], None]]" = {}
"""By patch, what is called with an import lock and the time after it was released."""


def install(undo: "Undo", patches: "Mapping[str, str]") -> None:
    """Install patches now where their modules are there, else when they come.

    Parameters
    ----------
    undo
        Takes what is replaced, now and later.
    patches
        Name of a file beside this one, by the module it patches.
    """
    recording.begin()
    by_module: dict[str, list[str]] = {}
    for patch, module in patches.items():
        by_module.setdefault(module, []).append(patch)
    for module, names in by_module.items():
        _waiting[module] = _arrival(undo, module, names)
    undo.call(_waiting.clear)
    undo.call(released.clear)
    locks = sys.modules["_frozen_importlib"]._ModuleLock
    put_around(undo, locks, "release", (_before_release, _after_release))
    for module in by_module:
        if module in sys.modules:
            _waiting[module]()


def _arrival(undo: "Undo", module: str, names: "list[str]") -> "Callable[[], None]":
    def install_all() -> None:
        for name in names:
            path = f"{__package__}.{name}"
            __import__(path)
            sys.modules[path].install(undo, sys.modules[module])

    return install_all


def _before_release(lock: "Any") -> "tuple[Any, int]":
    return lock, _core.now()


def _after_release(kept: "tuple[Any, int]", _result: None, failed: bool) -> None:
    lock, end_ns = kept
    if failed:
        return
    for note in [*released.values()]:
        note(lock, end_ns)
    arrived = _waiting.get(lock.name)
    if arrived is not None and lock.name in sys.modules:
        arrived()
