"""The channel: a queue from any threads to one, for programs that send messages instead of locking.

Items are kept in D. Vyukov's lock-free list for many producers and one consumer (2010); with a
`maxsize`, senders wait for room. Waiting, for an item or for room, is coordination and not
contention: a recording says who ended it. It is no drop-in for a lock, and none of `KINDS`.
"""

from contention_lab.native._core import Channel, ClosedError

__all__ = ["Channel", "ClosedError"]
