"""What the simulator leaves out, seen in the runs that a prediction is made from.

Other programs, memory that several cores ask for at once, a hypervisor: all of it makes work slower
the more cores are at work, and none of it is simulated. The recorded runs have it, with one thread
and with several. So their time over the simulated one is known at two numbers of cores at work, and
taken to go in between from one to the other. Beyond these, it stays what it was: nobody saw more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


LEAST_WIDTH: Final = 0.1
"""Cores by which two kinds of runs must differ; else both say the same, and their mean is taken."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """Logarithms of recorded over simulated time, and how many cores were at work meanwhile.

    Attributes
    ----------
    alone, together
        Of runs with one thread, and with several.
    cores_alone, cores_together
        At work on average, in the simulation of these.
    spread
        Standard deviation of the logarithms among runs of the same number of threads.
    """

    alone: float = 0.0
    together: float = 0.0
    cores_alone: float = 1.0
    cores_together: float = 2.0
    spread: float = 0.0

    def factor(self, cores_at_work: float) -> float:
        """Return by how much a simulated time is too short, if so many cores were at work."""
        width = self.cores_together - self.cores_alone
        share = (cores_at_work - self.cores_alone) / width if width > LEAST_WIDTH else 0.5
        share = min(1.0, max(0.0, share))
        return math.exp(self.alone + share * (self.together - self.alone))


NO_REMAINDER: Final = Remainder()


class Runs(NamedTuple):
    """Recorded times, and what is simulated of them: time in the same unit, cores at work."""

    recorded: Sequence[float]
    simulated: float
    cores_at_work: float


def remainder_of(alone: Runs, together: Runs) -> Remainder:
    """Return the remainder of runs with one thread, and with several."""
    parts = [
        [math.log(took / runs.simulated) for took in runs.recorded] for runs in (alone, together)
    ]
    one, several = map(median, parts)
    squares = [
        (log - middle) ** 2
        for part, middle in zip(parts, (one, several), strict=True)
        for log in part
    ]
    spread = math.sqrt(sum(squares) / max(1, len(squares) - 2))
    return Remainder(one, several, alone.cores_at_work, together.cores_at_work, spread)
