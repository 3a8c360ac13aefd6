"""The C core: clock, locks, recorder, stacks. The hot path, and nothing else.

`_core` is built from `module.c`, which includes one header per concept. Importing this package also
tells the core which files are not the user's code (the rule `analysis/sites.py` applies to traces
from anywhere), so that a lock is shown where the program made it and not inside `queue.py`.
"""

import os

from contention_lab.native import _core

_STDLIB = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  (pathlib costs 5 ms here)
_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120
_STUDIED = ("autodiff", "scenarios")
"""Parts of this package that are programs to record, not machinery."""

_core.set_library(
    (_STDLIB, "<frozen ", _HERE),
    (
        *(_STDLIB + name + os.sep for name in ("site-packages", "dist-packages", "test")),
        *(_HERE + name + os.sep for name in _STUDIED),
    ),
    (os.path.join(_HERE, "capture", "patches") + os.sep,),  # noqa: PTH118
)
