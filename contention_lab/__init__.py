"""Which lock, who holds it, who waits, and which fix wins: lock contention in Python.

The public face: locks, `record`, `load` and `diagnose`. Everything is imported when first used, so
that a program that only uses the locks does not pay for NumPy. This file itself imports nothing
that a recorded program may not have imported.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from contention_lab.capture import Session, record
    from contention_lab.diagnosis import diagnose
    from contention_lab.locks import (
        AdaptiveMutex,
        Channel,
        ClosedError,
        McsLock,
        Mutex,
        RWLock,
        SpinLock,
        TicketLock,
    )
    from contention_lab.trace import Trace, TraceError, load

__version__ = "0.1.0"
__all__ = [
    "AdaptiveMutex",
    "Channel",
    "ClosedError",
    "McsLock",
    "Mutex",
    "RWLock",
    "Session",
    "SpinLock",
    "TicketLock",
    "Trace",
    "TraceError",
    "diagnose",
    "load",
    "record",
]

_HOME = {
    "AdaptiveMutex": "contention_lab.locks",
    "Channel": "contention_lab.locks",
    "ClosedError": "contention_lab.locks",
    "McsLock": "contention_lab.locks",
    "Mutex": "contention_lab.locks",
    "RWLock": "contention_lab.locks",
    "Session": "contention_lab.capture",
    "SpinLock": "contention_lab.locks",
    "TicketLock": "contention_lab.locks",
    "Trace": "contention_lab.trace",
    "TraceError": "contention_lab.trace",
    "diagnose": "contention_lab.diagnosis",
    "load": "contention_lab.trace",
    "record": "contention_lab.capture",
}


def __getattr__(name: str) -> "Any":
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    __import__(home)
    value = getattr(sys.modules[home], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
