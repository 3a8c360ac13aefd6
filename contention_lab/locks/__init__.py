"""Locks that a recording sees, each a drop-in for `threading.Lock`, and a channel.

A new lock is one file here and one line in `KINDS`, by whose keys scenarios and clients choose.
"""

from collections.abc import Callable
from typing import Final

from contention_lab.locks.adaptive_mutex import AdaptiveMutex
from contention_lab.locks.channel import Channel, ClosedError
from contention_lab.locks.mcs_lock import McsLock
from contention_lab.locks.mutex import Mutex
from contention_lab.locks.protocol import Lock
from contention_lab.locks.rwlock import RWLock
from contention_lab.locks.spinlock import SpinLock
from contention_lab.locks.ticket_lock import TicketLock

KINDS: Final[dict[str, Callable[[str], Lock]]] = {
    "mutex": Mutex,
    "spinlock": SpinLock,
    "ticket": TicketLock,
    "mcs": McsLock,
    "adaptive": AdaptiveMutex,
    "rwlock": RWLock,
}

__all__ = [
    "KINDS",
    "AdaptiveMutex",
    "Channel",
    "ClosedError",
    "Lock",
    "McsLock",
    "Mutex",
    "RWLock",
    "SpinLock",
    "TicketLock",
]
