"""What threads, locks and cores would do: a discrete-event simulator, bounds, and calibration.

`machine.py` and `lock_policy.py` describe what is simulated, `program.py` what the threads do,
`engine.py` runs it, `policies/` holds one lock to a file, `bounds/` what theory says without
simulating. It knows nothing of findings or remedies, and predicts nothing by itself.
"""

from contention_lab.simulate.engine import simulate
from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.outcome import Outcome
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.program import Program

__all__ = ["POLICIES", "LockCosts", "LockPolicy", "Machine", "Outcome", "Program", "simulate"]
