"""The work of a recorded batch: who shares it, how long it takes, and what bounds that.

`crew.py` finds the threads among which the work can be spread, `batch.py` holds their steps and
runs them with other threads and cores, `sections.py` finds critical sections among the steps,
`limit.py` says what no simulation can beat. Remedies (`simulate/remedies/`) change a batch.
"""

from contention_lab.simulate.batch.batch import Batch, BatchTime, Conditions, LockKind, batch_of
from contention_lab.simulate.batch.crew import Crew, crew_of
from contention_lab.simulate.batch.limit import Limit, limit_of

__all__ = [
    "Batch",
    "BatchTime",
    "Conditions",
    "Crew",
    "Limit",
    "LockKind",
    "batch_of",
    "crew_of",
    "limit_of",
]
