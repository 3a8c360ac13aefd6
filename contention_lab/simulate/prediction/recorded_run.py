"""The recorded run itself, predicted: a model that misses it has no business beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.crew import Crew
    from contention_lab.simulate.prediction.forecast import Forecast, Forecaster


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The recorded time of a batch, and the predicted one.

    Attributes
    ----------
    threads, cores
        Of the recording.
    recorded_ns
        From the beginning of the crew to its end.
    predicted
        The forecast for the same conditions.
    """

    threads: int
    cores: int
    recorded_ns: float
    predicted: Forecast

    @property
    def error(self) -> float:
        """By what share the prediction is too long (positive) or too short."""
        return self.predicted.time_ns / max(self.recorded_ns, 1.0) - 1.0

    @property
    def miss(self) -> float:
        """The same as the logarithm of a ratio, without its sign."""
        return abs(math.log(max(self.predicted.time_ns, 1.0) / max(self.recorded_ns, 1.0)))

    @property
    def is_missed(self) -> bool:
        """Whether the recorded time is outside the interval of the model as it stands."""
        return not self.predicted.low_ns <= self.recorded_ns <= self.predicted.high_ns


def recorded_run(batch: Batch, crew: Crew, forecaster: Forecaster) -> RecordedRun:
    """Predict a recorded run.

    Parameters
    ----------
    batch, crew
        Its work, and who did it.
    forecaster
        For the machine it ran on.
    """
    found = forecaster.forecast(batch, batch.threads)
    return RecordedRun(batch.threads, forecaster.cores, float(crew.wall_ns), found)
