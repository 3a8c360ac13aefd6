"""`threading.Lock` and `RLock`, under every name that modules have for them.

Locks made from now on are ours. What makes them looks as it did: a function up to Python 3.12, the
type itself since 3.13. Those of `sleeping.py` and `import_locks.py` stay CPython's own.
"""

import sys

from contention_lab.capture.patches.names import replace_names
from contention_lab.capture.patches.sleeping import KEEP
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from contention_lab.capture.undo import Undo

_BUILTIN = type(len)


def install(undo: "Undo", module: "ModuleType") -> None:
    """Replace the lock types, unless their place is already taken (by gevent, for one)."""
    if type(module.allocate_lock) is not _BUILTIN:
        return
    undo.call(_core.drop_in_ends)
    _core.drop_in_begins("threading" not in sys.modules)
    replace_names(
        undo,
        [
            (module.allocate_lock, _core.allocate_lock),
            (module.allocate, _core.allocate),
            (module.LockType, _core.PlainLock),
            (module.RLock, _core.PlainRLock),
        ],
        except_for=KEEP,
    )
