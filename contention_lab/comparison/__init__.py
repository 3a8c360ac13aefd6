"""Two versions of a program, each recorded once or several times: what became better or worse.

Recordings become figures (`observation.py`), figures of repeats become differences with intervals
(`difference.py`), and conditions on them decide what fails a build (`condition.py`). It does not
ask whether the two did the same work: that is the caller's to see to.
"""

from contention_lab.comparison.compared import Compared, Comparison, compare
from contention_lab.comparison.condition import Condition, ConditionError
from contention_lab.comparison.difference import Difference, difference

__all__ = [
    "Compared",
    "Comparison",
    "Condition",
    "ConditionError",
    "Difference",
    "compare",
    "difference",
]
