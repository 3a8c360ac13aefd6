"""The time of a batch under given conditions: an estimate, an interval, and bounds.

The estimate is one simulation of as much of the work as fits a budget; the interval comes from the
spread of smaller ones in several possible worlds, and is as wide at least as the model missed the
recorded run by; wider still where more threads spin than there are cores, since there the turns of
the scheduler decide. Bounds hold for the work as it was recorded, whatever the costs are: intervals
end there, but for the few percent by which the work itself differs from run to run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.batch import Conditions
from contention_lab.simulate.batch.limit import Demand, demand_of, limit_from
from contention_lab.simulate.batch.run import Draw, Runner
from contention_lab.simulate.prediction.uncertainty import worlds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.simulate.batch.batch import Batch, BatchTime
    from contention_lab.simulate.batch.limit import Limit
    from contention_lab.simulate.calibration import Calibration

EIGHTY_PERCENT: Final = 1.2816
"""Standard deviations to either side that hold 80 % of a normal distribution."""
LEAST_DEVIATION: Final = 0.08
"""Nothing is predicted more exactly than to this share, with 80 % confidence: programs differ from
themselves by as much from run to run."""
COLLAPSE_DEVIATION: Final = 0.5
"""By how much the logarithm of a time is off in four of five cases, whatever is drawn, where
spinning threads outnumber the cores."""
COLLAPSING: Final = 0.05
"""Waiting for spinlocks from which on a batch with more threads than cores is such a case, as a
share of its time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much to simulate.

    Attributes
    ----------
    steps
        Steps of an estimate.
    draws
        Simulations for an interval, of `draw_steps` steps each.
    draw_steps
        Steps of each of them.
    """

    steps: int = 24_000
    draws: int = 6
    draw_steps: int = 5_000


QUICK: Final = Budget(steps=8_000, draws=4, draw_steps=3_000)
"""For a diagnosis, which must not take long."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The time of a batch.

    Attributes
    ----------
    threads
        How many threads share the work.
    time_ns, low_ns, high_ns
        Estimate and 80 % interval.
    draws_ns
        The simulations behind the interval, one for each possible world.
    limit
        What it cannot beat.
    used
        Share of the time that each lock is owned, by id; 0 is the GIL.
    doubt
        By how much the logarithm of the time is off in four of five cases, whatever is drawn.
    """

    threads: int
    time_ns: float
    low_ns: float
    high_ns: float
    draws_ns: tuple[float, ...]
    limit: Limit
    used: Mapping[int, float]
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times as fast, with an 80 % interval, and the most that is possible."""

    times: float
    low: float
    high: float
    bound: float


@dataclass(frozen=True, slots=True)
class Forecaster:
    """Forecasts of one machine.

    Attributes
    ----------
    calibration, cores
        Costs and cores.
    gil
        Whether there is a GIL, for work recorded with one.
    budget
        How much to simulate.
    miss
        By how much the model missed the recorded run, as the logarithm of a ratio.
    seed
        The same seed gives the same forecast.
    """

    calibration: Calibration
    cores: int
    gil: bool = True
    budget: Budget = Budget()
    miss: float = 0.0
    seed: int = 1

    def missing(self, miss: float) -> Forecaster:
        """Return the same for a model that missed the recorded run."""
        return replace(self, miss=abs(miss))

    def curve(self, batch: Batch, threads: Sequence[int]) -> tuple[Forecast, ...]:
        """Return forecasts of a batch with several thread counts."""
        demand, runner = demand_of(batch), Runner(batch)
        return tuple(self._forecast(runner, demand, count) for count in threads)

    def forecast(self, batch: Batch, threads: int) -> Forecast:
        """Return the forecast of a batch with one thread count.

        With the recorded number of threads each does what it did, if they all lived at one time.
        """
        return self._forecast(Runner(batch), demand_of(batch), threads)

    def _forecast(self, runner: Runner, demand: Demand, threads: int) -> Forecast:
        batch = runner.batch
        shared = None if threads == batch.threads and batch.each_its_own else threads
        found = runner.run(
            Conditions(shared, self.cores, self.calibration, self.gil),
            Draw(self.budget.steps, seed=self.seed),
        )
        drawn = []
        for world in worlds(self.calibration, self.budget.draws, self.seed):
            conditions = Conditions(shared, self.cores, world.calibration, self.gil)
            random = np.random.default_rng(world.seed)
            draw = Draw(self.budget.draw_steps, random, world.seed)
            drawn.append(runner.run(conditions, draw).elapsed_ns)
        limit = limit_from(demand, threads, self.cores, gil=self.gil and batch.gil)
        time_ns = max(found.elapsed_ns, limit.least_ns)
        doubt = COLLAPSE_DEVIATION if self._collapses(batch, found, threads) else 0.0
        width = self._width(_deviation(drawn), doubt)
        return Forecast(
            threads,
            time_ns,
            max(limit.least_ns / math.exp(LEAST_DEVIATION), time_ns / width),
            time_ns * width,
            tuple(drawn),
            limit,
            found.used,
            doubt,
        )

    def _collapses(self, batch: Batch, found: BatchTime, threads: int) -> bool:
        """Tell whether threads spin for each other that do not all have a core."""
        if threads <= self.cores:
            return False
        waited = sum(found.waited_ns.get(id_, 0.0) for id_, one in batch.kinds.items() if one.spins)
        return waited > COLLAPSING * found.elapsed_ns

    def gain(self, before: Forecast, after: Forecast, outside_ns: float = 0.0) -> Gain:
        """Return how many times as fast a batch would be.

        Parameters
        ----------
        before, after
            Forecasts in the same possible worlds.
        outside_ns
            Time before and after the batch, which stays as it is, in ns.
        """

        def ratio(old: float, new: float) -> float:
            return (old + outside_ns) / max(new + outside_ns, 1.0)

        times = ratio(before.time_ns, after.time_ns)
        bound = ratio(before.time_ns, after.limit.least_ns)
        pairs = zip(before.draws_ns, after.draws_ns, strict=True)
        deviation = _deviation([ratio(old, new) for old, new in pairs])
        width = self._width(deviation, max(before.doubt, after.doubt))
        return Gain(times, times / width, min(bound, times * width), bound)

    def _width(self, deviation: float, doubt: float) -> float:
        """Return the factor from an estimate to the ends of its interval."""
        own = math.hypot(max(EIGHTY_PERCENT * deviation, LEAST_DEVIATION), doubt)
        return math.exp(math.hypot(own, self.miss) if self.miss > own else own)


def _deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of logarithms."""
    positive = [max(value, 1e-9) for value in values]
    return float(np.std(np.log(positive), ddof=1)) if len(positive) > 1 else 0.0
