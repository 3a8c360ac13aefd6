"""The adaptive mutex: its waiters spin while the holder runs on a core, and sleep else.

What a short hold is worth spinning for, it learns (as HotSpot's monitors and glibc's adaptive mutex
do); that the holder is off its core, it sees on Linux by the holder's CPU clock standing still.
"""

from contention_lab.native._core import AdaptiveMutex

__all__ = ["AdaptiveMutex"]
