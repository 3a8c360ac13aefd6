"""Recording: sessions of a running program, and starting a program that records itself.

Imported when first used: the process that only starts another need not load the recorder.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from contention_lab.capture.session import Session, record
    from contention_lab.capture.summary import Summary

__all__ = ["Session", "Summary", "record"]

_HOME = {"Session": "session", "Summary": "summary", "record": "session"}


def __getattr__(name: str) -> "Any":
    try:
        home = f"{__name__}.{_HOME[name]}"
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    __import__(home)
    value = getattr(sys.modules[home], name)
    globals()[name] = value
    return value
