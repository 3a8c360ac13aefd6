"""Looking again and again whether something has happened, instead of waiting for it.

Three ways leave traces: failed tries at a lock, recorded as the series they are; waits with a tiny
timeout that keep ending without success; and a queue whose lock one side takes many times as often
as there can be items in it, since each item needs one put and one get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.trace import Outcome, WaitFlag

if TYPE_CHECKING:
    from contention_lab.trace import Trace

QUEUE: Final = "in Queue"
"""How the type of a queue's lock ends."""
PUTS: Final = ("Queue.put", "Queue.put_nowait")
"""How the names of a queue's methods end that put something in."""
LOOKS: Final = ("Queue.get", "Queue.get_nowait", "Queue.empty", "Queue.qsize")
"""How the names of those end that look whether something is in."""


@dataclass(frozen=True, slots=True)
class Looks:
    """How threads looked at one lock, or what it guards.

    Attributes
    ----------
    lock
        Id.
    threads
        Ids of those that looked in vain.
    count
        How often they did.
    wait_s
        Time that they spent in it, all together.
    usual_s
        How long a look lasted, the median; 0 where that is not known.
    """

    lock: int
    threads: tuple[int, ...]
    count: int
    wait_s: float
    usual_s: float


def vain_waits(trace: Trace, longest_s: float, most_success: float) -> tuple[Looks, ...]:
    """Return waits with timeouts that nearly always ended without success, by lock.

    Parameters
    ----------
    trace
        The trace.
    longest_s
        Waits that lasted longer are no polling.
    most_success
        Share of a thread's waits for a lock that may be successful.
    """
    waits = trace.wait_columns
    blocking = waits["outcome"] != Outcome.FAILED_TRY
    vain = waits["outcome"] == Outcome.TIMED_OUT
    if not vain.any():
        return ()
    length = np.maximum(0, waits["end_ns"].astype(np.int64) - waits["start_ns"].astype(np.int64))
    vain &= length <= longest_s * 1e9
    if not vain.any():
        return ()
    pair = waits["lock"].astype(np.int64) << 32 | waits["thread"]
    pairs, counts = np.unique(pair[vain], return_counts=True)
    every, totals = np.unique(pair[blocking], return_counts=True)
    kept = pairs[counts >= (1.0 - most_success) * totals[np.searchsorted(every, pairs)]]
    chosen = vain & np.isin(pair, kept)
    found = []
    for lock in np.unique(kept >> 32).tolist():
        mine = chosen & (waits["lock"] == lock)
        lengths = length[mine] / 1e9
        threads = tuple(np.unique(waits["thread"][mine]).tolist())
        usual_s = float(np.median(lengths))
        found.append(Looks(lock, threads, len(lengths), float(lengths.sum()), usual_s))
    return tuple(found)


def vain_gets(trace: Trace, least_ratio: float) -> tuple[Looks, ...]:
    """Return queues that threads looked into many times as often as others did anything to them.

    Threads that were seen putting something in are none of those who only look. Of several it must
    have been seen that each looks: else some may feed the others.

    Parameters
    ----------
    trace
        The trace.
    least_ratio
        How many times as often each of the threads must have taken the lock as all others together.
    """
    counters = trace.counters
    found = []
    for lock in trace.locks.values():
        if not lock.type.endswith(QUEUE):
            continue
        mine = counters[(counters["lock"] == lock.id) & (counters["acquires"] > 0)]
        mine = mine[np.argsort(-mine["acquires"].astype(np.int64), kind="stable")]
        acquires, threads = mine["acquires"].astype(np.int64), mine["thread"].tolist()
        before = np.cumsum(acquires)
        others = before[-1] - before if len(before) else before
        enough = acquires[:-1] >= least_ratio * np.maximum(1, others[:-1])
        if not enough.any():
            continue
        count = int(np.flatnonzero(enough)[0]) + 1  # all before took it as often or more
        looking = tuple(sorted(threads[:count]))
        if count > 1 and not all(_seen(trace, lock.id, (one,), LOOKS) for one in looking):
            continue
        if not _seen(trace, lock.id, looking, PUTS):
            vain = int(before[count - 1] - others[count - 1])  # each of the others' may be a put
            found.append(Looks(lock.id, looking, vain, 0.0, 0.0))
    return tuple(found)


def _seen(trace: Trace, lock: int, threads: tuple[int, ...], methods: tuple[str, ...]) -> bool:
    """Tell whether threads were seen in certain methods of a queue, waiting for it or not."""
    waits, states = trace.wait_columns, trace.states
    waited = np.isin(waits["thread"], threads) & (waits["lock"] == lock)
    seen = np.isin(states["thread"], threads)
    stacks = np.unique(np.concatenate([waits["stack"][waited], states["stack"][seen]])).tolist()
    return any(
        frame.function.endswith(methods) for stack in stacks for frame in trace.stack(int(stack))
    )


def vain_tries(trace: Trace) -> tuple[Looks, ...]:
    """Return series of failed tries, by lock."""
    waits = trace.wait_columns[trace.wait_columns["flags"] & int(WaitFlag.SERIES) != 0]
    length = np.maximum(0, waits["end_ns"].astype(np.int64) - waits["start_ns"].astype(np.int64))
    found = []
    for lock in np.unique(waits["lock"]).tolist():
        mine = waits["lock"] == lock
        count = int(waits["spins"][mine].sum())
        total_s = float(length[mine].sum()) / 1e9
        threads = tuple(np.unique(waits["thread"][mine]).tolist())
        found.append(Looks(lock, threads, count, total_s, total_s / max(1, count)))
    return tuple(found)
