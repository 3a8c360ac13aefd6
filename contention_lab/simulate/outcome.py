"""What a simulation found: throughput, response times, who waited and where time went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.simulate.packing import EndReason

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.simulate.packing import Results


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one simulation, after its warm-up.

    Attributes
    ----------
    elapsed_ns
        Simulated time at the end, in ns; for a finite program, when its last thread ended.
    measured_ns
        The part of it after the warm-up, in ns.
    reason
        Why it ended. `STUCK`: threads wait for each other for ever.
    events, preemptions
        How many were handled, and how often a thread lost its core.
    locks, threads
        LOCK_STATS and THREAD_STATS records, one for each lock and thread.
    responses
        Counts of response times, sixteen bins to an octave from 1 ns on.
    """

    elapsed_ns: float
    measured_ns: float
    reason: EndReason
    events: int
    preemptions: int
    locks: NDArray[np.void]
    threads: NDArray[np.void]
    responses: NDArray[np.uint64]

    @classmethod
    def of(cls, results: Results) -> Outcome:
        """Return an engine's results."""
        totals = results.totals[0]
        return cls(
            elapsed_ns=float(totals["now_ns"]),
            measured_ns=float(totals["measured_ns"]),
            reason=EndReason(int(totals["reason"])),
            events=int(totals["events"]),
            preemptions=int(totals["preemptions"]),
            locks=results.locks,
            threads=results.threads,
            responses=results.responses,
        )

    @property
    def finished(self) -> int:
        """Operations finished, by all threads."""
        return int(self.threads["finished"].sum())

    @property
    def throughput_per_s(self) -> float:
        """Operations per second, by all threads."""
        return self.finished / self.measured_ns * 1e9 if self.measured_ns > 0 else 0.0

    @property
    def response_ns(self) -> float:
        """Mean time of an operation from asking for the lock to being done with it, in ns."""
        count = int(self.responses.sum())
        return float(self.threads["response_ns"].sum()) / count if count else 0.0

    def response_quantile_ns(self, share: float) -> float:
        """Return a quantile of the response times, in ns, to the width of a bin (4 %)."""
        total = int(self.responses.sum())
        if total == 0:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self.responses), share * total))
        octave, part = divmod(min(place, len(self.responses) - 1), 16)
        return float(2.0**octave * (1.0 + (part + 0.5) / 16.0))

    def utilisation(self, lock: int) -> float:
        """Return the share of time in which somebody owned a lock; hand-offs included."""
        return float(self.locks["busy_ns"][lock]) / self.measured_ns if self.measured_ns else 0.0

    @property
    def cores_at_work(self) -> float:
        """Return how many cores were, on average; those of threads that spin count."""
        busy = sum(float(self.threads[of].sum()) for of in ("run_ns", "spin_ns", "overhead_ns"))
        return busy / self.measured_ns if self.measured_ns > 0 else 0.0

    def contended_share(self, lock: int) -> float:
        """Return the share of a lock's acquires that had to wait."""
        acquires = int(self.locks["acquires"][lock])
        return int(self.locks["contended"][lock]) / acquires if acquires else 0.0
