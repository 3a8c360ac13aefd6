"""Which code is the user's: the frame to show for a whole stack.

The innermost frame of a wait is usually inside a library that takes the lock on the program's
behalf (`queue.put`, a logging handler); the frame somebody can change is the innermost one that is
not. Nothing here looks at the machine: a trace may come from another one, so paths decide.

What is not user code, and why:

- the standard library: nobody edits it, and its locks are taken for its callers. Recognised by
  its folder (`lib/python3.11/`, `Lib` on Windows, `python311.zip`), but not the packages
  installed under it, and not `test`, CPython's own test-suite, whose locks are its own;
- frozen modules (`<frozen importlib._bootstrap>`), for the same reason;
- this package's machinery, which is not part of the recorded program. Its reference engine
  `contention_lab/autodiff` and the scenarios are: they are the programs we study.

Third-party packages are user code: their locks are the ones people ask about.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.trace import Frame

MACHINERY: Final = frozenset(
    {
        *("analysis", "capture", "cli", "comparison", "diagnosis", "export", "locks", "native"),
        *("report", "sampling", "scaling", "simulate", "sweep", "testing", "trace"),
    }
)
"""Sub-packages of contention_lab that are not part of a recorded program."""

_PREFIX = re.compile(
    r"(?:^|/)(?:lib(?:64)?/python3(?:\.\d+)?t?|python3\d+t?\.zip)/"
    r"(?!site-packages/|dist-packages/|test/)",
    re.IGNORECASE,
)
_FLAT = re.compile(r"(?:^|/)Lib/(\w+)(?:\.py$|/)")
_OURS = re.compile(r"(?:^|/)contention_lab/(?:(\w+)/|\w+\.py$)")


def user_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of user code.

    Parameters
    ----------
    stack
        Frames, innermost first.

    Returns
    -------
    Frame or None
        None if there is no user code in it.
    """
    return next((frame for frame in stack if is_user_code(frame.filename)), None)


@lru_cache(maxsize=4096)
def is_user_code(filename: str) -> bool:
    """Tell whether a file, by the path its code object has, is user code."""
    path = filename.replace("\\", "/")
    if path.startswith("<frozen "):
        return False
    ours = list(_OURS.finditer(path))
    if ours:
        package = ours[-1].group(1)
        return not (package is None or package in MACHINERY)
    flat = _FLAT.search(path)
    if flat and flat.group(1) in sys.stdlib_module_names:
        return False
    return not _PREFIX.search(path)
