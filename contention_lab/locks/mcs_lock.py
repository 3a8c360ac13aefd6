"""The MCS lock: a spinlock that is first come, first served, each waiter with a word of its own.

J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
multiprocessors" (1991). A release touches one waiter's cache line, however many wait; with more
threads than cores it waits, as `TicketLock`'s does, until the scheduler runs the one whose turn it
is.
"""

from contention_lab.native._core import McsLock

__all__ = ["McsLock"]
