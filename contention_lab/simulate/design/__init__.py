"""Predicting a program that nobody has run, from a recording of another that does the same work.

`design.py` says what is known of it, `sample.py` takes the times from a recording, `build.py` makes
a batch of both, and `outlook.py` simulates it, with an interval; `remainder.py` has what the
recorded runs took beside.
"""

from contention_lab.simulate.design.build import HandOver, batch_of_design
from contention_lab.simulate.design.design import Call, Design, kind_of_lock
from contention_lab.simulate.design.outlook import Outlook, Prospect
from contention_lab.simulate.design.remainder import Remainder, Runs, remainder_of
from contention_lab.simulate.design.sample import Sample, SampleError, sample_of

__all__ = [
    "Call",
    "Design",
    "HandOver",
    "Outlook",
    "Prospect",
    "Remainder",
    "Runs",
    "Sample",
    "SampleError",
    "batch_of_design",
    "kind_of_lock",
    "remainder_of",
    "sample_of",
]
