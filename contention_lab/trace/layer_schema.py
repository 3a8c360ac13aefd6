"""The layout of the events that the layer below Python brings: a part of `schema.py`.

`FORMAT.md` explains every byte of it, kinds 15, 16, 24 to 29 and 32.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np


class WorldCall(IntEnum):
    """The call of the C library a lock's holder was blocked in (BLOCKING.call)."""

    OTHER = 0
    READ = 1
    WRITE = 2
    RECV = 3
    SEND = 4
    SENDFILE = 5
    POLL = 6
    SELECT = 7
    EPOLL_WAIT = 8
    CONNECT = 9
    ACCEPT = 10
    OPEN = 11
    FSYNC = 12
    FCNTL_LOCK = 13
    FLOCK = 14
    SLEEP = 15
    WAITPID = 16
    GETADDRINFO = 17
    SIGWAIT = 18


class BlockingFlag(IntEnum):
    """Bits of BLOCKING.flags."""

    STACK_LATER = 1  # the stack is that of the next release of a lock
    OPEN = 2  # still blocked when the recording stopped


class GilEventFlag(IntEnum):
    """Bits of GIL_WAIT.flags and GIL_HOLD.flags."""

    ASKED = 1  # the waiter asked the holder to give it up; the holder was asked to
    OPEN = 2  # still waiting when the recording stopped
    NO_FRAMES = 4  # the thread was not running Python code
    PASSING = 8  # a wait: it had given the GIL up, and waited until another thread took it


class NativeWaitFlag(IntEnum):
    """Bits of NATIVE_WAIT.flags."""

    GAVE_UP = 1  # timed out, interrupted or failed
    RELEASE = 2  # no wait: the thread released or signalled what others waited for
    STACK_LATER = 4  # the Python stack is that of the thread's next release of a lock, or the like


BLOCKING: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("thread", "<u4"),
        ("lock", "<u4"),
        ("stack", "<u4"),
        ("call", "<u2"),
        ("flags", "<u2"),
    ]
)
GIL_WAIT: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("thread", "<u4"),
        ("stack", "<u4"),
        ("holder", "<u4"),
        ("waiters", "<u4"),
        ("lock", "<u4"),
        ("flags", "<u4"),
    ]
)
GIL_HOLD: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("thread", "<u4"),
        ("stack", "<u4"),
        ("waiters", "<u4"),
        ("flags", "<u4"),
    ]
)
RUN_HOLDS: Final = 13
"""At most so many holds are one GIL_RUN."""
GIL_RUN: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("thread", "<u4"),
        ("stack", "<u4"),
        ("waiters", "<u4"),
        ("flags", "<u2"),
        ("count", "<u2"),
        ("step_ns", "<u2", (2 * (RUN_HOLDS - 1),)),
    ]
)
GIL_TOTAL: Final = np.dtype(
    [
        ("thread", "<u4"),
        ("reserved", "<u4"),
        ("waits", "<u8"),
        ("wait_ns", "<u8"),
        ("holds", "<u8"),
        ("held_ns", "<u8"),
        ("asked", "<u8"),
    ]
)
NATIVE_WAIT: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("lock", "<u4"),
        ("thread", "<u4"),
        ("native_id", "<u4"),
        ("holder", "<u4"),
        ("stack", "<u4"),
        ("native_stack", "<u4"),
        ("flags", "<u4"),
        ("reserved", "<u4"),
    ]
)
