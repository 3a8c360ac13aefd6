"""Pools of worker threads: which threads they have, which tasks ran when, and what queued.

Each task that runs is a hold of its worker on the pool's entry, and each task that waits for a
worker is a wait for it, of a party of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import coordination_waits, hold_spans
from contention_lab.analysis.windows import Windows

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.trace import Lock, Trace

    Integers: TypeAlias = npt.NDArray[np.int64]

POOL = "concurrent.futures.ThreadPoolExecutor"
RESULTS = "concurrent.futures.Future"


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """One executor.

    Attributes
    ----------
    lock
        Its entry.
    results
        The entry that waits for its results go by, 0 if there is none.
    workers
        Ids of its threads, as far as they ran a task.
    start_ns, end_ns, worker
        Of the tasks that ran, in the order of their start.
    queued_start_ns, queued_end_ns, queued_stack
        Of the tasks that waited for a worker and got one: from when to when, and where they were
        submitted.
    """

    lock: Lock
    results: int
    workers: tuple[int, ...]
    start_ns: Integers
    end_ns: Integers
    worker: Integers
    queued_start_ns: Integers
    queued_end_ns: Integers
    queued_stack: Integers

    @property
    def queued(self) -> Windows:
        """When at least one task waited for a worker."""
        return Windows.union(self.queued_start_ns, self.queued_end_ns)


def pools(trace: Trace) -> tuple[Pool, ...]:
    """Return all pools that ran a task, in the order in which they were made."""
    counters, holds, waits = trace.counters, hold_spans(trace), coordination_waits(trace)
    results = [lock for lock in trace.locks.values() if lock.type.startswith(RESULTS)]
    found = []
    for lock in sorted(trace.locks.values(), key=lambda lock: lock.id):
        if not lock.type.startswith(POOL):
            continue
        ran = holds.where(holds.lock == lock.id)
        ran = ran.where(np.argsort(ran.start_ns, kind="stable"))
        queued = waits.where(waits.lock == lock.id)
        counted = counters["thread"][counters["lock"] == lock.id]
        # The two entries are made one after the other, when the pool is.
        own = [other.id for other in results if other.id < lock.id and other.site == lock.site]
        found.append(
            Pool(
                lock=lock,
                results=max(own, default=0),
                workers=tuple(np.union1d(counted, np.unique(ran.thread)).tolist()),
                start_ns=ran.start_ns,
                end_ns=ran.end_ns,
                worker=ran.thread.astype(np.int64),
                queued_start_ns=queued.start_ns,
                queued_end_ns=queued.end_ns,
                queued_stack=trace.wait_columns["stack"][queued.index].astype(np.int64),
            )
        )
    return tuple(found)
