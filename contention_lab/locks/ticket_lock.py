"""The ticket lock: a spinlock that is first come, first served; waiters draw numbers.

J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
multiprocessors" (1991). With more threads than cores each release waits until the scheduler happens
to run the one thread whose turn it is.
"""

from contention_lab.native._core import TicketLock

__all__ = ["TicketLock"]
