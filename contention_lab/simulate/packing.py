"""The tables that the engine runs on: NumPy records laid out as `native/tables.h` declares them.

They are the seam between the descriptions (`Machine`, `LockPolicy`, `Program`) and the two engines,
the one in C and the reference in Python, which read nothing else. Times are nanoseconds as float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Op(IntEnum):
    """What a thread does next."""

    COMPUTE = 0
    SLEEP = 1
    ACQUIRE = 2
    RELEASE = 3
    CALL = 4
    POST = 5
    SERVE = 6
    FINISH = 7


class OpFlag(IntFlag):
    """How it does it."""

    NONE = 0
    GIL = 1
    """COMPUTE, SERVE: only with the GIL."""
    READ = 2
    """ACQUIRE, RELEASE: the reading side of a reader-writer lock."""
    SHARD = 4
    """ACQUIRE: one of `ns` locks from `target` on, the first with probability `spread` / 1000, the
    others alike. RELEASE: the one drawn last."""


class Order(IntEnum):
    """Who gets a released lock."""

    COMPETITIVE = 0
    """Whoever comes first: the lock is free until a waiter, or a newcomer, has taken it."""
    FIFO = 1
    """The longest waiter, which owns the lock from the moment of the release."""
    PHASE_FAIR = 2
    """Readers and writers in turn."""
    CHANNEL = 3
    """No lock: requests for a server thread."""


class SpinEnd(IntEnum):
    """What a spinner does once it has spun for `spin_ns`."""

    PARK = 0
    YIELD = 1


OPS: Final = np.dtype(
    [("code", "u1"), ("flags", "u1"), ("spread", "<u2"), ("target", "<i4"), ("ns", "<f8")]
)
"""One step of a program. `spread` is the coefficient of variation in thousandths: 0 takes `ns`
exactly, 1000 draws from an exponential distribution, values between shift one."""

ITEMS: Final = np.dtype([("start", "<i8"), ("stop", "<i8")])
"""A piece of work: a range of OPS."""

QUEUES: Final = np.dtype([("first", "<i4"), ("last", "<i4"), ("endless", "<i4"), ("pad", "<i4")])
"""Items that threads take in turn; an endless queue begins anew."""

LOCKS: Final = np.dtype(
    [
        ("order", "<i4"),
        ("spin_end", "<i4"),
        ("adaptive", "<i4"),
        ("costs", "<i4"),
        ("costs_length", "<i4"),
        ("wakes_at_once", "<i4"),
        ("gil_first", "<i4"),
        ("permits", "<i4"),
        ("spin_ns", "<f8"),
        ("backoff_min_ns", "<f8"),
        ("backoff_max_ns", "<f8"),
        ("acquire_ns", "<f8"),
        ("release_ns", "<f8"),
        ("transfer_ns", "<f8"),
        ("park_ns", "<f8"),
        ("wake_call_ns", "<f8"),
        ("wake_extra_ns", "<f8"),
    ]
)
"""A lock's policy. `wakes_at_once`: how many woken waiters may be on their way to a lock that is
not handed over. `gil_first`: a waiter that sees the lock free takes the GIL, and then tries.
`permits`: how many threads may have it at a time, at least 1.
`costs` is the place in COSTS of its hand-off costs, the n-th of which (from 0, the last for all
beyond) is that with n waiters that spin on a core."""

MACHINE: Final = np.dtype(
    [
        ("cores", "<i4"),
        ("gil", "<i4"),
        ("slice_ns", "<f8"),
        ("tick_ns", "<f8"),
        ("switch_ns", "<f8"),
        ("wake_same_ns", "<f8"),
        ("wake_other_ns", "<f8"),
        ("preempt_after_ns", "<f8"),
        ("gil_interval_ns", "<f8"),
        ("warmup_ns", "<f8"),
        ("end_ns", "<f8"),
        ("seed", "<u8"),
        ("events_limit", "<u8"),
    ]
)
"""Cores, scheduler, GIL (the index of its lock, or -1) and the stretch of time to simulate."""

LOCK_STATS: Final = np.dtype(
    [
        ("acquires", "<u8"),
        ("contended", "<u8"),
        ("parks", "<u8"),
        ("wakes", "<u8"),
        ("wait_ns", "<f8"),
        ("longest_wait_ns", "<f8"),
        ("busy_ns", "<f8"),
    ]
)
"""What happened at a lock after the warm-up. `busy_ns`: somebody owned it; hand-offs included."""

THREAD_STATS: Final = np.dtype(
    [
        ("finished", "<u8"),
        ("run_ns", "<f8"),
        ("spin_ns", "<f8"),
        ("overhead_ns", "<f8"),
        ("ready_ns", "<f8"),
        ("wait_ns", "<f8"),
        ("gil_ns", "<f8"),
        ("response_ns", "<f8"),
        ("end_ns", "<f8"),
    ]
)
"""What a thread did after the warm-up: on a core in its own work, spinning, or in the locks' own
work; off the core though ready; waiting for locks, and for the GIL, all told."""

TOTALS: Final = np.dtype(
    [
        ("now_ns", "<f8"),
        ("measured_ns", "<f8"),
        ("events", "<u8"),
        ("preemptions", "<u8"),
        ("reason", "<i4"),
        ("unfinished", "<i4"),
    ]
)

RESPONSE_BINS: Final = 1024
"""Bins of the response times: sixteen to an octave, from 1 ns on."""

EVENTS: Final = np.dtype([("time_ns", "<f8"), ("kind", "<i4"), ("who", "<i4")])
"""One handled event, for comparing the engines."""


class EndReason(IntEnum):
    """Why a simulation stopped."""

    TIME = 0
    DONE = 1
    STUCK = 2
    LIMIT = 3


@dataclass(frozen=True, slots=True)
class Tables:
    """What goes in.

    Attributes
    ----------
    machine
        One MACHINE record (shape ``(1,)``).
    ops, items, queues, locks, costs
        OPS, ITEMS, QUEUES, LOCKS records and float64 hand-off costs.
    threads
        int32, the queue of each thread.
    """

    machine: NDArray[np.void]
    ops: NDArray[np.void]
    items: NDArray[np.void]
    queues: NDArray[np.void]
    locks: NDArray[np.void]
    costs: NDArray[np.float64]
    threads: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Results:
    """What comes out: arrays that an engine fills."""

    locks: NDArray[np.void]
    threads: NDArray[np.void]
    totals: NDArray[np.void]
    responses: NDArray[np.uint64]
    events: NDArray[np.void]

    @classmethod
    def empty(cls, tables: Tables, keep_events: int = 0) -> Results:
        """Return arrays of the right size, all zero.

        Parameters
        ----------
        tables
            What will be simulated.
        keep_events
            How many of the first events to write down.
        """
        return cls(
            locks=np.zeros(len(tables.locks), LOCK_STATS),
            threads=np.zeros(len(tables.threads), THREAD_STATS),
            totals=np.zeros(1, TOTALS),
            responses=np.zeros(RESPONSE_BINS, np.uint64),
            events=np.zeros(keep_events, EVENTS),
        )


def record(dtype: np.dtype[Any], **fields: Any) -> NDArray[np.void]:
    """Return one record of a dtype, with the fields given and zero elsewhere."""
    made = np.zeros(1, dtype)
    for name, value in fields.items():
        made[name] = value
    return made
