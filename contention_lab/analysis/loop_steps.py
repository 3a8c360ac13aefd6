"""Steps of event loops that took long, and who was ready meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.analysis.windows import Windows

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.trace import Trace

    Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LoopSteps:
    """Recorded steps of one loop: callbacks and steps of tasks of 2 ms or longer.

    Attributes
    ----------
    thread
        The thread the loop runs on.
    start_ns, end_ns
        int64.
    task, stack
        Whose step it was (0: of none), and where that stood afterwards.
    ready
        How many others were ready, or became due.
    victim, victim_stack
        One of the tasks among these, and where it stands.
    """

    thread: int
    start_ns: Integers
    end_ns: Integers
    task: Integers
    stack: Integers
    ready: Integers
    victim: Integers
    victim_stack: Integers

    @property
    def length_ns(self) -> Integers:
        """How long each took, int64."""
        return self.end_ns - self.start_ns

    @property
    def windows(self) -> Windows:
        """When they ran."""
        return Windows.union(self.start_ns, self.end_ns)

    def where(self, chosen: npt.NDArray[np.bool_]) -> LoopSteps:
        """Return the chosen ones."""
        columns = (getattr(self, name)[chosen] for name in self.__slots__ if name != "thread")
        return LoopSteps(self.thread, *columns)


def loop_steps(trace: Trace, thread: int) -> LoopSteps:
    """Return the recorded steps of the loop on a thread, in the order of the file."""
    records = trace.steps[trace.steps["thread"] == thread]
    start, end = (
        np.minimum(records[name], LAST_TIME_NS).astype(np.int64) for name in ("start_ns", "end_ns")
    )
    names = ("task", "stack", "ready", "victim", "victim_stack")
    return LoopSteps(
        thread, start, np.maximum(start, end), *(records[name].astype(np.int64) for name in names)
    )
