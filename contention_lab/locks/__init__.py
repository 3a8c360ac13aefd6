"""Locks that a recording sees. Each is a drop-in for `threading.Lock`.

A new lock is one file here and one line in `KINDS`, by whose keys scenarios and clients choose.
"""

from typing import Final

from contention_lab.locks.mutex import Mutex
from contention_lab.locks.protocol import Lock
from contention_lab.locks.spinlock import SpinLock
from contention_lab.locks.ticket_lock import TicketLock

KINDS: Final[dict[str, type[Mutex] | type[SpinLock] | type[TicketLock]]] = {
    "mutex": Mutex,
    "spinlock": SpinLock,
    "ticket": TicketLock,
}

__all__ = ["KINDS", "Lock", "Mutex", "SpinLock", "TicketLock"]
