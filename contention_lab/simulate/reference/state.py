"""What the simulation knows at a moment: threads, cores, locks, and the events to come.

It moves nothing by itself. Two events of one time are handled in the order they were planned.
"""

from __future__ import annotations

import heapq
import math
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from contention_lab.simulate.packing import Results, Tables

INF: Final = math.inf
NOBODY: Final = -1
_MASK: Final = (1 << 64) - 1

# What the CPU time of a thread is spent on; after it, the thread goes on as `threads.py` says.
NEXT, COMPUTE, TAKE, CALLING, SPIN, POLL, PARKING, RETRY = range(8)
# Where a thread is.
READY, RUNNING, BLOCKED, ENDED = range(4)
# Kinds of events.
END, SLICE, WAKE, CLAIM, SWITCH, RESET = range(6)


class Thread:
    """A thread: where it is in its program and what it is doing."""

    def __init__(self, index: int, queue: int, seed: int) -> None:
        self.index = index
        self.queue = queue
        self.random = seed
        self.pc = self.stop = 0
        self.place, self.phase = READY, NEXT
        self.remaining = 0.0  # CPU time left of the phase
        self.began = 0.0  # since when it counts, once on a core
        self.pending = 0.0  # computation to begin, which may need the GIL first
        self.pending_gil = False
        self.core = self.last_core = NOBODY
        self.stamp = 0  # an END or WAKE event with another stamp is void
        self.lock: Lock | None = None  # the one it waits for
        self.reading = False
        self.parked = False
        self.timed_out = False  # woke up by itself after the GIL's interval
        self.demands = False  # will ask for the GIL
        self.waiting_since = 0.0
        self.demand_at = 0.0  # when it will have waited for the GIL for an interval
        self.watched = False  # a SWITCH event is planned: at most one, at that time or before
        self.switches_seen = 0
        self.backoff = 0.0
        self.shard = NOBODY
        self.has_gil = False
        self.asked_at = -1.0
        self.request: Request | None = None  # being served
        self.serves: Lock | None = None  # whose request that is
        self.ready_since = 0.0
        self.vruntime = 0.0  # CPU time it has been given
        self.deadline = 0.0  # up to which vruntime it was promised a core
        self.lag = 0.0  # what it was owed when it went to sleep; negative: had too much
        self.held: list[Lock] = []  # owned alone, newest last


class Request(NamedTuple):
    """What a channel carries: who waits for the reply, the service time, when it was sent."""

    client: Thread | None
    ns: float
    sent_at: float


class Core:
    """A core, and the thread on it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.thread: Thread | None = None
        self.last: Thread | None = None
        self.since = 0.0
        self.armed = False  # the end of the slice is planned
        self.stamp = 0


class Lock:
    """A lock, who owns it and who waits."""

    def __init__(self, index: int, policy: Any, costs: list[float]) -> None:
        self.index = index
        self.order = int(policy["order"])
        self.spin_end = int(policy["spin_end"])
        self.adaptive = bool(policy["adaptive"])
        self.spin_ns = float(policy["spin_ns"])
        self.backoff_min_ns = float(policy["backoff_min_ns"])
        self.backoff_max_ns = float(policy["backoff_max_ns"])
        self.acquire_ns = float(policy["acquire_ns"])
        self.release_ns = float(policy["release_ns"])
        self.transfer_ns = float(policy["transfer_ns"])
        self.park_ns = float(policy["park_ns"])
        self.wake_call_ns = float(policy["wake_call_ns"])
        self.wake_extra_ns = float(policy["wake_extra_ns"])
        self.costs = costs
        self.owner: Thread | None = None
        self.last: Thread | None = None
        self.readers = 0  # those that have it together with others: permits that are out, too
        self.permits = int(policy["permits"])
        # Parked ones; all of them where hand-offs are direct.
        self.waiters: deque[Thread] = deque()
        self.writers_waiting = 0
        self.spinners: list[Thread] = []  # those on a core
        self.polling = 0  # those on a core that back off
        self.waking = 0  # woken ones on their way
        self.wakes_at_once = int(policy["wakes_at_once"])
        self.gil_first = bool(policy["gil_first"])
        self.claimed = False  # a CLAIM is planned
        self.switches = 0
        self.drop = False  # the GIL: its owner is asked to let go
        self.busy_since = 0.0
        self.requests: deque[Request] = deque()
        self.idle_server: Thread | None = None
        # The GIL: gave it up on demand, and waits until another has taken it.
        self.barred: Thread | None = None

    def handoff_ns(self) -> float:
        """Return what handing over costs the next owner, with the present spinners."""
        return self.costs[min(len(self.spinners) + self.polling, len(self.costs) - 1)]

    def is_free(self) -> bool:
        """Tell whether somebody may have it who does not share it, as readers do."""
        return self.owner is None and self.readers < self.permits


class State:
    """Everything, and the heap of events."""

    def __init__(self, tables: Tables, results: Results) -> None:
        machine = tables.machine[0]
        self.results = results
        self.machine = {name: machine[name].item() for name in machine.dtype.names}
        self.ops = tables.ops.tolist()
        self.items = tables.items.tolist()
        self.queues = tables.queues.tolist()
        self.taken = [first for first, *_ in self.queues]
        costs = tables.costs.tolist()
        self.locks = [
            Lock(i, row, costs[row["costs"] : row["costs"] + row["costs_length"]])
            for i, row in enumerate(tables.locks)
        ]
        self.gil = self.locks[self.machine["gil"]] if self.machine["gil"] >= 0 else None
        self.cores = [Core(i) for i in range(self.machine["cores"])]
        self.idle = len(self.cores)
        self.ready: list[Thread] = []
        self.runnable = self.running = 0
        self.virtual_sum = 0.0  # vruntime of the runnable, less `began` of those on a core
        self.seed = self.machine["seed"]
        self.threads = [
            Thread(i, queue, (self.seed + (i + 1) * 0xD1342543DE82EF95) & _MASK)
            for i, queue in enumerate(tables.threads.tolist())
        ]
        self.unfinished = sum(1 for thread in self.threads if not self.queues[thread.queue][2])
        self.now = 0.0
        self.measured_from = 0.0
        self.heap: list[tuple[float, int, int, int, int]] = []
        self.planned = 0
        self.handled = 0

    def plan(self, time: float, kind: int, who: int, stamp: int) -> None:
        """Plan an event."""
        heapq.heappush(self.heap, (time, self.planned, kind, who, stamp))
        self.planned += 1

    def engine_random(self) -> float:
        """Draw a number in [0, 1) for choices among threads."""
        self.seed, value = _splitmix(self.seed)
        return value

    def thread_random(self, thread: Thread) -> float:
        """Draw a number in [0, 1) from a thread's own stream, the same whatever others do."""
        thread.random, value = _splitmix(thread.random)
        return value

    def duration(self, thread: Thread, ns: float, spread: int) -> float:
        """Draw how long a step takes."""
        if spread == 0:
            return ns
        share = spread / 1000.0
        draw = -math.log(1.0 - self.thread_random(thread))
        return ns * ((1.0 - share) + share * draw)

    def settle(self, thread: Thread) -> None:
        """Book the CPU time that a running thread has used until now."""
        used = self.now - thread.began
        if used > 0.0:
            row = self.results.threads[thread.index]
            if thread.phase in (SPIN, POLL):
                row["spin_ns"] += used
            elif thread.phase == COMPUTE:
                row["run_ns"] += used
            else:
                row["overhead_ns"] += used
            thread.vruntime += used
            thread.remaining = max(thread.remaining - used, 0.0)
            thread.began = self.now

    def book_busy(self, lock: Lock) -> None:
        """Book how long a lock has been owned until now."""
        self.results.locks["busy_ns"][lock.index] += self.now - lock.busy_since
        lock.busy_since = self.now

    def book_response(self, response_ns: float) -> None:
        """Count a response time in its bin."""
        bits = struct.unpack("<Q", struct.pack("<d", max(response_ns, 1.0)))[0]
        place = min((bits >> 48) - (1023 << 4), len(self.results.responses) - 1)
        self.results.responses[place] += 1


def _splitmix(state: int) -> tuple[int, float]:
    """Advance SplitMix64 (Steele, Lea and Flood 2014); return the state and a number in [0, 1)."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    z ^= z >> 31
    return state, (z >> 11) * 2.0**-53
