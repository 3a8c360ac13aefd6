"""What threads do: steps, pieces of work made of steps, and queues of pieces that threads take.

A builder, whose only product is the engine's tables. It does not check that locks are released in
any order, or at all: programs that deadlock can be simulated too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contention_lab.simulate.lock_policy import LockPolicy, packed_locks
from contention_lab.simulate.packing import (
    ITEMS,
    MACHINE,
    OPS,
    QUEUES,
    Op,
    OpFlag,
    Tables,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from contention_lab.simulate.machine import Machine

MANY_EVENTS: Final = 2**62
NO_OPS: Final = np.zeros(0, OPS)


class Step(NamedTuple):
    """One step: an OPS record."""

    code: Op
    flags: OpFlag = OpFlag.NONE
    spread: int = 0
    target: int = 0
    ns: float = 0.0


def compute(ns: float, spread: float = 0.0, gil: bool = False) -> Step:
    """Use a core for `ns`.

    Parameters
    ----------
    ns
        CPU time in ns; its mean if it varies.
    spread
        Coefficient of variation, from 0 (always `ns`) to 1 (exponentially distributed).
    gil
        Only with the GIL, where there is one; without this, the GIL is released.
    """
    return Step(Op.COMPUTE, OpFlag.GIL if gil else OpFlag.NONE, _thousandths(spread), 0, ns)


def sleep(ns: float, spread: float = 0.0) -> Step:
    """Wait off the core, without the GIL, for `ns`: input and output, a timer."""
    return Step(Op.SLEEP, OpFlag.NONE, _thousandths(spread), 0, ns)


def acquire(lock: int, read: bool = False) -> Step:
    """Acquire a lock (its reading side with `read`)."""
    return Step(Op.ACQUIRE, OpFlag.READ if read else OpFlag.NONE, 0, lock)


def release(lock: int, read: bool = False) -> Step:
    """Release a lock."""
    return Step(Op.RELEASE, OpFlag.READ if read else OpFlag.NONE, 0, lock)


def acquire_shard(first: int, shards: int, first_share: float | None = None) -> Step:
    """Acquire one of `shards` locks, drawn anew each time.

    Parameters
    ----------
    first
        The first of them.
    shards
        How many.
    first_share
        The first one's probability; alike by default. The others share the rest alike.
    """
    share = 1.0 / shards if first_share is None else first_share
    return Step(Op.ACQUIRE, OpFlag.SHARD, _thousandths(share), first, float(shards))


def release_shard(first: int) -> Step:
    """Release the one drawn last."""
    return Step(Op.RELEASE, OpFlag.SHARD, 0, first)


def call(channel: int, ns: float, spread: float = 0.0) -> Step:
    """Let the channel's server work for `ns`, and wait until it has."""
    return Step(Op.CALL, OpFlag.NONE, _thousandths(spread), channel, ns)


def post(channel: int, ns: float, spread: float = 0.0) -> Step:
    """Let the channel's server work for `ns`, some time."""
    return Step(Op.POST, OpFlag.NONE, _thousandths(spread), channel, ns)


def serve(channel: int, gil: bool = False) -> Step:
    """Do the work of a channel's next request; `gil`: it needs the GIL.

    What comes after it is done for each request, before the reply. An endless queue serves for
    ever.
    """
    return Step(Op.SERVE, OpFlag.GIL if gil else OpFlag.NONE, 0, channel)


FINISH = Step(Op.FINISH)
"""Count one operation."""


def _thousandths(share: float) -> int:
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"{share}: a share or coefficient of variation lies between 0 and 1")
    return round(1000 * share)


class Program:
    """Locks, work and threads, put together step by step."""

    def __init__(self) -> None:
        self._locks: list[LockPolicy] = []
        self._gil = -1
        self._ops: list[NDArray[np.void]] = []
        self._op_count = 0
        self._items: list[NDArray[np.void]] = []
        self._item_count = 0
        self._queues: list[tuple[int, int, int, int]] = []
        self._threads: list[int] = []

    def add_lock(self, policy: LockPolicy, count: int = 1) -> int:
        """Add a lock, or `count` alike; return the index of the first."""
        self._locks.extend([policy] * count)
        return len(self._locks) - count

    def add_gil(self, policy: LockPolicy) -> int:
        """Add the lock that steps with `gil` need; return its index."""
        self._gil = self.add_lock(policy)
        return self._gil

    def add_item(self, steps: Iterable[Step] | NDArray[np.void]) -> int:
        """Add a piece of work; return its index.

        Parameters
        ----------
        steps
            Steps, or OPS records.
        """
        ops = steps if isinstance(steps, np.ndarray) else np.array([*steps], dtype=OPS)
        start = self.add_ops(ops)
        return self.add_range(start, start + len(ops))

    def add_ops(self, ops: NDArray[np.void]) -> int:
        """Add steps that are in no piece of work yet; return the place of the first.

        Parameters
        ----------
        ops
            OPS records; they are not copied if they are all there is.
        """
        self._ops.append(ops)
        self._op_count += len(ops)
        return self._op_count - len(ops)

    def add_range(self, start: int, stop: int) -> int:
        """Add the steps from `start` to `stop`, exclusive, as a piece of work; return its index."""
        return self.add_ranges(np.array([start]), np.array([stop]))

    def add_ranges(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> int:
        """Add several ranges of steps as pieces of work; return the index of the first."""
        items = np.empty(len(start), ITEMS)
        items["start"], items["stop"] = start, stop
        self._items.append(items)
        self._item_count += len(items)
        return self._item_count - len(items)

    def add_queue(self, items: Sequence[Iterable[Step]], endless: bool = False) -> int:
        """Add a queue of pieces of work, which its threads take in turn.

        Parameters
        ----------
        items
            The pieces, each a sequence of steps.
        endless
            Begin anew at the end.

        Returns
        -------
        int
            The queue's index.
        """
        first = self._item_count
        for steps in items:
            self.add_item(steps)
        return self.add_queue_of(first, self._item_count, endless)

    def add_queue_of(self, first: int, last: int, endless: bool = False) -> int:
        """Add a queue of items that were added before, `first` to `last` exclusive."""
        self._queues.append((first, last, int(endless), 0))
        return len(self._queues) - 1

    def add_thread(self, queue: int) -> int:
        """Add a thread that works on a queue; return its index."""
        self._threads.append(queue)
        return len(self._threads) - 1

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    def tables(
        self,
        machine: Machine,
        *,
        end_ns: float = math.inf,
        warmup_ns: float = 0.0,
        seed: int = 1,
        events_limit: int = MANY_EVENTS,
    ) -> Tables:
        """Return the engine's tables.

        Parameters
        ----------
        machine
            Where it runs.
        end_ns
            When to stop, in simulated ns; infinite: when all threads have ended.
        warmup_ns
            What happens before this, in simulated ns, is not counted.
        seed
            Of all that is drawn; the same seed gives the same events.
        events_limit
            Stop after so many events.
        """
        if not end_ns > warmup_ns >= 0:
            raise ValueError(f"{end_ns} ns: the end must come after the warm-up, {warmup_ns} ns")
        locks, costs = packed_locks(self._locks, self.threads)
        facts = record(
            MACHINE,
            cores=machine.cores,
            gil=self._gil,
            slice_ns=machine.slice_ns,
            tick_ns=machine.tick_ns,
            switch_ns=machine.switch_ns,
            wake_same_ns=machine.wake_same_ns,
            wake_other_ns=machine.wake_other_ns,
            preempt_after_ns=machine.preempt_after_ns,
            gil_interval_ns=machine.gil_interval_ns,
            warmup_ns=warmup_ns,
            end_ns=end_ns,
            seed=seed,
            events_limit=events_limit,
        )
        return Tables(
            machine=facts,
            ops=self._ops[0] if len(self._ops) == 1 else np.concatenate([*self._ops, NO_OPS]),
            items=np.concatenate([*self._items, np.zeros(0, ITEMS)]),
            queues=np.array(self._queues, dtype=QUEUES),
            locks=locks,
            costs=costs,
            threads=np.array(self._threads, dtype=np.int32),
        )
