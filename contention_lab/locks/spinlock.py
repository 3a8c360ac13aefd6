"""The spinlock of the flagship case: test-and-test-and-set, burning CPU while it waits.

With no more spinners than cores it hands over faster than any lock that sleeps; with more, spinners
take the CPU from the holder they wait for. `backoff`, `yield_after` and `park_after` are the usual
remedies (T. E. Anderson, "The performance of spin lock alternatives", 1990).
"""

from contention_lab.native._core import SpinLock

__all__ = ["SpinLock"]
