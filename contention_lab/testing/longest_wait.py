"""The longest wait of a trace, in a sentence: which lock, who waited, who held it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis import blame
from contention_lab.analysis.intervals import lock_waits
from contention_lab.analysis.parties import culprits, victims
from contention_lab.diagnosis.wording import duration, place

if TYPE_CHECKING:
    from contention_lab.trace import Frame, Lock, Trace


@dataclass(frozen=True, slots=True)
class LongestWait:
    """One wait for a lock.

    Attributes
    ----------
    lock
        Which.
    wait_s
        How long, without the GIL.
    victim, culprit
        The user's code that waited, and that held the lock for most of the wait; None if unknown.
    """

    lock: Lock
    wait_s: float
    victim: Frame | None
    culprit: Frame | None

    def __str__(self) -> str:
        """Return it as a clause: `` `get` (a.py:3) waited 82 ms for `x` while ... held it``."""
        holder = f" while {place(self.culprit)} held it" if self.culprit else ""
        made = f" (made at {self.lock.site.place})" if self.lock.site else ""
        return (
            f"{place(self.victim)} waited {duration(self.wait_s)} for "
            f"`{self.lock.label}`{made}{holder}"
        )


def longest_wait(trace: Trace) -> LongestWait | None:
    """Return the longest wait for a lock; None if there was none."""
    spans = lock_waits(trace)
    if not len(spans.index) or not spans.length_ns.any():
        return None
    longest = int(spans.index[np.argmax(spans.length_ns)])
    divided = blame(trace)
    pairs = divided.pairs
    mine = np.flatnonzero(pairs["wait"] == longest)
    worst = int(mine[np.argmax(pairs["ns"][mine])])
    waiting, holding = victims(trace), culprits(trace, divided)
    return LongestWait(
        trace.lock(int(trace.waits["lock"][longest])),
        float(spans.length_ns.max()) / 1e9,
        waiting.frames[waiting.which[longest]],
        holding.frames[holding.which[worst]],
    )
