"""What a recorded program would do under other conditions, or with a remedy applied.

`predict` is the whole question, from a trace; `forecast.py` is one answer: the time of a batch with
an interval, and the bounds that it cannot pass. `recorded_run.py` asks first whether the model
explains what was recorded.
"""

from contention_lab.simulate.prediction.forecast import Forecast, Forecaster, Gain
from contention_lab.simulate.prediction.predict import Option, Prediction, predict
from contention_lab.simulate.prediction.question import Fix, fixes
from contention_lab.simulate.prediction.recorded_run import RecordedRun

__all__ = [
    "Fix",
    "Forecast",
    "Forecaster",
    "Gain",
    "Option",
    "Prediction",
    "RecordedRun",
    "fixes",
    "predict",
]
