"""The part of a running recording that belongs to one test.

The recorder writes about ten times a second; who asks for what has just happened waits until it is
in the file.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.time_window import during
from contention_lab.trace import load

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

PATIENCE_S: Final = 5.0
"""Longest wait for the recorder to have written what happened; it takes a tenth of a second."""
_STEP_S: Final = 0.03


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """From the start of a test on.

    Attributes
    ----------
    path
        The trace that is being written.
    start_mono_ns
        When the test started, by `time.monotonic_ns()`.
    """

    path: Path
    start_mono_ns: int

    def until_now(self) -> Trace:
        """Return what has happened in the test so far.

        Orders of locks are those of the whole recording so far: an order is recorded once, when it
        is first seen, and may contradict one of an earlier test.

        Raises
        ------
        TraceError
            The trace cannot be read.
        TimeoutError
            The recorder does not write any more.
        """
        now = time.monotonic_ns()
        give_up = now + int(PATIENCE_S * 1e9)
        while True:
            trace = load(self.path)
            end_ns = now - trace.start_mono_ns
            if trace.complete or (trace.status is not None and trace.status["time_ns"] >= end_ns):
                break
            if time.monotonic_ns() > give_up:
                raise TimeoutError(
                    f"{self.path}: the recorder has written nothing for {PATIENCE_S:g} s; "
                    "is the disk full?"
                )
            time.sleep(_STEP_S)
        part = during(trace, max(0, self.start_mono_ns - trace.start_mono_ns), end_ns)
        return replace(part, order_chunks=trace.order_chunks)

    def start_ns(self, trace: Trace) -> int:
        """Return the start of the test in the time of a trace of it."""
        return max(0, self.start_mono_ns - trace.start_mono_ns)
