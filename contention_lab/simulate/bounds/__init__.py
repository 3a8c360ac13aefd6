"""What theory says of a closed system without simulating it: a ceiling, and an exact mean.

The system: N threads that think, then need a lock for a while, for ever. `asymptotic.py` is a bound
that nothing can beat; `mva.py` is exact where service times are exponential. Together they are a
band in which locks with little overhead lie.
"""

from contention_lab.simulate.bounds.asymptotic import Ceiling, ceiling
from contention_lab.simulate.bounds.mva import MeanValues, mean_values

__all__ = ["Ceiling", "MeanValues", "ceiling", "mean_values"]
