"""The layout of samples of threads that nobody instrumented: a part of `schema.py`.

`FORMAT.md` explains every byte of it, kind 31.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np


class Doing(IntEnum):
    """What a sampled thread was doing (SAMPLE.doing)."""

    RUNNING = 1
    HOLDS_GIL = 2  # running, and it had the GIL
    AWAITS_GIL = 3
    AWAITS_LOCK = 4
    COORDINATES = 5  # waits for an item, an event, a condition, a thread
    IO = 6  # blocked in a system call
    SLEEPS = 7  # for a time it chose
    SPINS = 8  # busy because a lock is taken
    UNKNOWN = 9  # asleep, and nothing says what for


SAMPLE: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("weight_ns", "<u8"),
        ("thread", "<u4"),
        ("stack", "<u4"),
        ("lock", "<u4"),
        ("holder", "<u4"),
        ("doing", "<u2"),
        ("reserved", "<u2"),
        ("count", "<f4"),
    ]
)
