"""The textbook's question: threads that think, then need one lock, for ever. How fast are they?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.engine import Engine, simulate
from contention_lab.simulate.policies.policy import Sharing, Use
from contention_lab.simulate.program import FINISH, Program, compute, serve

if TYPE_CHECKING:
    from contention_lab.simulate.lock_policy import LockCosts
    from contention_lab.simulate.machine import Machine
    from contention_lab.simulate.outcome import Outcome
    from contention_lab.simulate.policies.policy import Policy
    from contention_lab.simulate.program import Step

OPERATIONS: Final = 20_000
"""Operations to count, after a tenth as many that are not."""
SLICES: Final = 40
"""With more threads than cores, no fewer slices of the scheduler than this are simulated."""
_EVENTS_LIMIT: Final = 20_000_000
_MIX: Final = 20
"""Pieces of work in which reading and writing sections are mixed."""


@dataclass(frozen=True, slots=True)
class ClosedSystem:
    """Threads, each of which thinks for a while, then works under the lock for a while.

    Attributes
    ----------
    policy
        The lock.
    costs
        What the lock costs.
    machine
        Cores and scheduler.
    hold_ns, think_ns
        Work under the lock and between two operations, in ns.
    hold_spread, think_spread
        Their coefficients of variation, from 0 (constant) to 1 (exponential).
    sharing
        For policies with several locks, or with readers.
    """

    policy: Policy
    costs: LockCosts
    machine: Machine
    hold_ns: float
    think_ns: float
    hold_spread: float = 0.0
    think_spread: float = 0.0
    sharing: Sharing = field(default_factory=Sharing)

    def __post_init__(self) -> None:
        if not (0 <= self.hold_ns < math.inf and 0 <= self.think_ns < math.inf):
            raise ValueError("times must be finite and not negative")
        if self.hold_ns + self.think_ns + self.costs.acquire_ns <= 0:
            raise ValueError("an operation has to take some time: hold, think or acquire")

    def program(self, threads: int) -> Program:
        """Return what `threads` threads do."""
        program = Program()
        lock = self.policy.lock(self.costs)
        if self.policy.is_gil:
            first = program.add_gil(lock)
        else:
            first = program.add_lock(lock, self.policy.locks(self.sharing))
        for thread in range(threads):
            pieces = [self._piece(first, thread, reads) for reads in self._mix()]
            program.add_thread(program.add_queue(pieces, endless=True))
        if self.policy.has_server:
            program.add_thread(program.add_queue([[serve(first)]], endless=True))
        return program

    def simulated(
        self,
        threads: int,
        *,
        operations: int = OPERATIONS,
        seed: int = 1,
        engine: Engine | None = None,
    ) -> Outcome:
        """Simulate.

        Parameters
        ----------
        threads
            How many threads.
        operations
            About how many operations to count, were the lock free of any overhead.
        seed, engine
            Of the simulation.
        """
        rate = min(threads, self.machine.cores) / (self.hold_ns + self.think_ns + 20.0)
        rate = min(rate, 1.0 / (self.hold_ns + 20.0))
        span = operations / rate
        if threads + self.policy.has_server > self.machine.cores:
            span = max(span, SLICES * max(self.machine.slice_ns, self.machine.tick_ns))
        tables = self.program(threads).tables(
            self.machine,
            warmup_ns=0.1 * span,
            end_ns=1.1 * span,
            seed=seed,
            events_limit=_EVENTS_LIMIT,
        )
        return simulate(tables, engine)

    def with_costs(self, costs: LockCosts) -> ClosedSystem:
        """Return the same system with other costs."""
        return replace(self, costs=costs)

    def _piece(self, first: int, thread: int, reads: bool) -> list[Step]:
        use = Use(first, thread, self.sharing, reads)
        body = compute(self.hold_ns, self.hold_spread)
        return [
            compute(self.think_ns, self.think_spread),
            *self.policy.section(use, body),
            FINISH,
        ]

    def _mix(self) -> list[bool]:
        """Return which pieces read: spread evenly, in the shares asked for."""
        if not self.policy.tells_readers:
            return [False]
        share = self.sharing.read_share
        return [int((i + 1) * share + 1e-9) > int(i * share + 1e-9) for i in range(_MIX)]
