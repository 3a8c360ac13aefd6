"""The time that a design would take, with an interval, from a few recordings of another design.

With one thread it is made of recordings with one; with more, of recordings in which two threads ran
at once, since what they do to each other's caches and memory is in these times. Each possible world
has another recording, items drawn anew from it, and other costs (`prediction/uncertainty.py`). What
the recorded runs themselves took beside what is simulated (`remainder.py`) is added to all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.batch import Conditions
from contention_lab.simulate.batch.run import Draw, Runner
from contention_lab.simulate.design.build import batch_of_design
from contention_lab.simulate.design.remainder import NO_REMAINDER
from contention_lab.simulate.prediction.forecast import COLLAPSE_DEVIATION, EIGHTY_PERCENT
from contention_lab.simulate.prediction.uncertainty import worlds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.design.build import HandOver
    from contention_lab.simulate.design.design import Design
    from contention_lab.simulate.design.remainder import Remainder
    from contention_lab.simulate.design.sample import Sample

ALL: Final = 10**9
"""Steps to simulate: all there are."""
WORLDS: Final = 8
MODEL_DEVIATION: Final = 0.3
"""By how much the logarithm of a time is off in four of five cases, whatever is drawn: what a
design changes beside waiting (caches, memory, page faults, hand-overs) is not in the recording of
another one. Seen on a held-out workload: the seven ways to share a server, training another model
(256, 512 and 10 units, batches of 256, Adam) at 1 to 32 threads on two busy cores, what all
predictions had in common left to the remainder."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """The time of a batch, in ns, with an 80 % interval, and the cores at work meanwhile."""

    threads: int
    time_ns: float
    low_ns: float
    high_ns: float
    cores_at_work: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What there is to predict from.

    Attributes
    ----------
    alone, together
        Recordings with one thread, and with two.
    calibration
        Costs of the host.
    hand_over
        Costs of handing a job to another thread there.
    remainder
        What the recorded runs took beside what is simulated.
    """

    alone: Sequence[Sample]
    together: Sequence[Sample]
    calibration: Calibration
    hand_over: HandOver
    remainder: Remainder = NO_REMAINDER

    def _gil_share(self) -> float:
        """Return the least of the recordings with one thread.

        Who loses its core with the GIL seems to use it meanwhile; that makes shares too large.
        """
        return min(sample.gil for sample in self.alone)

    def prospect(
        self,
        design: Design,
        items: int,
        threads: int,
        cores: int,
        *,
        gil: bool = True,
        draws: int = WORLDS,
    ) -> Prospect:
        """Return the time of a batch.

        Parameters
        ----------
        design
            What threads share.
        items
            How many items of work there are.
        threads, cores
            How many threads do them, on how many cores.
        gil
            Whether there is a GIL.
        draws
            How many possible worlds to look at.
        """
        recordings = self.alone if threads == 1 else self.together
        found, at_work = [], []
        for number, world in enumerate(worlds(self.calibration, draws, seed=threads)):
            random = np.random.default_rng([world.seed, number])
            sample = recordings[number % len(recordings)].drawn(items, random)
            sample = replace(sample, gil=self._gil_share())
            batch = batch_of_design(design, sample, threads, cores, self.hand_over)
            shared = None if batch.each_its_own else threads
            run = Runner(batch).run(
                Conditions(shared, cores, world.calibration, gil), Draw(ALL, seed=world.seed)
            )
            found.append(run.elapsed_ns)
            at_work.append(run.cores_at_work)
        logs = np.log(np.maximum(found, 1.0))
        deviation = float(np.std(logs, ddof=1)) if len(found) > 1 else 0.0
        collapses = design.spins and threads > cores
        model = COLLAPSE_DEVIATION if collapses else MODEL_DEVIATION
        width = math.exp(math.hypot(EIGHTY_PERCENT * deviation, self.remainder.spread, model))
        cores_at_work = median(at_work)
        time_ns = float(np.exp(np.median(logs))) * self.remainder.factor(cores_at_work)
        return Prospect(threads, time_ns, time_ns / width, time_ns * width, cores_at_work)
