"""The parking mutex: one compare-and-swap when free, asleep in the kernel when not.

The algorithm is the three-state futex mutex of U. Drepper, "Futexes Are Tricky" (2011), section 5.
It is not fair: a running thread may take the lock before one that is just waking up, which is what
keeps its throughput up when threads outnumber cores.
"""

from contention_lab.native._core import Mutex

__all__ = ["Mutex"]
