"""The reader-writer lock: readers together, writers alone, in phases that alternate.

It is phase-fair (B. B. Brandenburg and J. H. Anderson, "Spin-based reader-writer synchronization
for multiprocessor real-time systems", 2010): a reader waits for one writer at most, and no writer
starves. `lock.read` and `lock.write` are locks themselves, and traced apart.
"""

from contention_lab.native._core import RWLock

__all__ = ["RWLock"]
