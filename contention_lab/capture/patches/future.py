"""`concurrent.futures.Future`: waiting for a result.

The waiting itself is done by the future's condition, and recorded by `condition.py`; here the
futures of an executor get their common entry.
"""

from contention_lab.capture.patches.executors import submitting
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making."""
    wrap(undo, module.Future, "__init__", _made)


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "Any") -> None:  # noqa: N807
        original(self)
        executor = submitting.executor
        if executor is not None:
            _core.same_as(self._condition._lock, executor.results)

    return __init__
