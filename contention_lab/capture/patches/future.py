"""`concurrent.futures.Future`: waiting for a result.

The waiting itself is done by the future's condition, and recorded by `condition.py`; here the
futures of an executor get their common entry.
"""

from contention_lab.capture.patches.around import put_around

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from contention_lab.capture.undo import Undo


def install(undo: "Undo", module: "ModuleType") -> None:
    """Note which are made by submitting."""
    put_around(undo, module.Future, "__init__", "Future.__init__")
