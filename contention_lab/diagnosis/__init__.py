"""Tables to verdicts: what limits the program, who waits, who is to blame, what to do.

One file per kind of finding, all of them in `registry.py`; every number that decides is in
`thresholds.py`. A wrong accusation is worse than silence.
"""

from contention_lab.diagnosis.finding import AccusedLock, Diagnosis, Finding, Party, Remedy
from contention_lab.diagnosis.growth import SweepVerdict, most_telling, sweep_verdict
from contention_lab.diagnosis.several import diagnose_together
from contention_lab.diagnosis.trace_diagnosis import diagnose

__all__ = [
    "AccusedLock",
    "Diagnosis",
    "Finding",
    "Party",
    "Remedy",
    "SweepVerdict",
    "diagnose",
    "diagnose_together",
    "most_telling",
    "sweep_verdict",
]
