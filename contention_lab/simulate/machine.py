"""The machine that is simulated: cores, scheduler and wake-ups.

It describes; what the figures mean is decided by the engine. The scheduler is one queue of ready
threads for all cores, which fits machines with few cores better than those with many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine.

    Attributes
    ----------
    cores
        Cores that threads can use.
    slice_ns
        How long a thread may run while others wait for its core, in ns. Linux: 0.70 to 0.75 ms
        times 1 + log2 of the cores, of which at most eight count.
    tick_ns
        Slices end at a multiple of this, in ns; 0: exactly when they are used up. Linux: 1 to 4 ms.
    switch_ns
        Time a core needs to go over to another thread, in ns.
    wake_same_ns, wake_other_ns
        From the call that wakes a thread until it is ready, in ns: all cores busy, so that it
        queues up; one of them idle, so that it runs at once.
    preempt_after_ns
        A woken thread that finds no idle core takes that of the thread which has run longest, if
        that is at least this long, in ns; infinite: it waits for its turn.
    gil_interval_ns
        How long a thread waits for the GIL before it asks its owner to let go, in ns
        (`sys.getswitchinterval()`).
    """

    cores: int
    slice_ns: float = 1.4e6
    tick_ns: float = 0.0
    switch_ns: float = 1.5e3
    wake_same_ns: float = 1e3
    wake_other_ns: float = 10e3
    preempt_after_ns: float = math.inf
    gil_interval_ns: float = 5e6

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ValueError(f"{self.cores} cores: at least one is needed")
        times = (
            self.slice_ns,
            self.tick_ns,
            self.switch_ns,
            self.wake_same_ns,
            self.wake_other_ns,
            self.preempt_after_ns,
            self.gil_interval_ns,
        )
        if not all(time >= 0 for time in times) or not self.slice_ns or not self.gil_interval_ns:
            raise ValueError("times of a machine must not be negative, nor slices be empty")

    @classmethod
    def ideal(cls, cores: int) -> Machine:
        """Return a machine on which nothing but the program takes time.

        Parameters
        ----------
        cores
            How many cores it has.
        """
        return cls(cores, switch_ns=0.0, wake_same_ns=0.0, wake_other_ns=0.0)
