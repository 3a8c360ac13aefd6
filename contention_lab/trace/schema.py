"""The layout of a `.clt` file: magic numbers, chunk kinds and NumPy dtypes.

It does not read or write anything. `FORMAT.md` beside it explains every byte; the two and
`native/schema.h` must agree, which `tests/unit/test_trace_schema.py` checks.

Everything is little-endian, whatever the host. Times are nanoseconds since the start of the
recording (the `mono_ns` of the file header), already converted from clock ticks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from contention_lab.trace.layer_schema import (
    BLOCKING,
    GIL_HOLD,
    GIL_RUN,
    GIL_TOTAL,
    GIL_WAIT,
    NATIVE_WAIT,
)
from contention_lab.trace.sample_schema import SAMPLE

MAGIC: Final = b"\x89CLT\r\n\x1a\n"
MAJOR: Final = 1
MINOR: Final = 1
CHUNK_MAGIC: Final = 0x43544C43  # b"CLTC"
MAX_CHUNK_BYTES: Final = 64 << 20
"""A longer payload is damage, not data: readers refuse it instead of allocating it."""
ALIGNMENT: Final = 8
HISTOGRAM_BUCKETS: Final = 32


class ChunkKind(IntEnum):
    """What the payload of a chunk holds."""

    META = 1  # one JSON object; later ones update earlier ones key by key
    CODES = 2  # variable: code objects
    FRAMES = 3  # FRAME: code object and instruction, resolved to a line
    STACKS = 4  # variable: frame ids, innermost first
    LOCKS = 5  # variable: one lock each
    THREADS = 6  # variable: one thread each; a later record replaces an earlier one
    WAITS = 7  # WAIT
    HOLDS = 8  # HOLD: holds that blocked somebody, were handed off, or were too long for SHORT
    SHORT_HOLDS = 9  # SHORT_HOLD: uncontended holds, level `trace`; thread in the chunk header
    COUNTERS = 10  # COUNTER: running totals; the last one per (lock, thread) is the truth
    STATUS = 11  # STATUS: what the recorder knows of itself
    END = 12  # STATUS: the recording was closed in order
    GIL = 13  # GIL_SAMPLE: who held the GIL, about every millisecond
    ORDER = 14  # ORDER: which lock was taken while which others were held, when first seen
    BLOCKING = 15  # BLOCKING: a system call in which a thread was blocked while it held a lock
    GIL_WAITS = 16  # GIL_WAIT: a wait for the GIL
    LOOP_STEPS = 17  # LOOP_STEP: callbacks that kept an event loop for long
    STATES = 18  # STATE: what a thread was doing, sampled
    LOAD = 20  # LOAD: how many threads of the process wanted a CPU, sampled
    GIL_HOLDS = 24  # GIL_HOLD: from taking the GIL to giving it up, while others waited for it
    GIL_TOTALS = 25  # GIL_TOTAL: running totals; the last one per thread is the truth
    NATIVE_LOCKS = 26  # variable: locks of the C library
    NATIVE_FRAMES = 27  # variable: places in native code
    NATIVE_STACKS = 28  # variable: native frame ids, innermost first
    NATIVE_WAITS = 29  # NATIVE_WAIT: a wait for a native lock, or a release of one
    NATIVE_IMAGES = 30  # variable: files of native code, with their build ids
    SAMPLES = 31  # SAMPLE: what a thread that nobody instrumented was doing
    GIL_RUNS = 32  # GIL_RUN: several GIL_HOLD of one thread


class Level(IntEnum):
    """How much is recorded (the header's `level`)."""

    COUNTERS = 0
    PROFILE = 1
    TRACE = 2


class Clock(IntEnum):
    """Where time stamps come from (the header's `clock`)."""

    MONOTONIC = 0
    TSC = 1


class Outcome(IntEnum):
    """How an attempt to acquire ended."""

    ACQUIRED = 0
    TIMED_OUT = 1
    FAILED_TRY = 2  # acquire(blocking=False) on a held lock
    INTERRUPTED = 3  # an exception (KeyboardInterrupt) ended the wait
    CANCELLED = 4  # asyncio
    OPEN = 5  # still waiting when the recording stopped


class WaitKind(IntEnum):
    """Why a thread waited."""

    CONTENTION = 0  # somebody else held the lock
    COORDINATION = 1  # waiting for an event, an item, a thread


class WaitFlag(IntEnum):
    """Bits of WAIT.flags."""

    TIMEOUT_GIVEN = 1
    STACK_TRUNCATED = 2
    SERIES = 4  # of failed tries in a row: from the first until the thread had a lock
    AGAIN = 8  # since its last wait on it, the thread has not let go of the lock
    ROOM = 16  # for room in a queue of asyncio or a Channel, and not for an item


class GilFlag(IntEnum):
    """Bits of GIL_SAMPLE.flags."""

    HELD = 1


class OrderFlag(IntEnum):
    """Bits of ORDER.flags."""

    TIMEOUT_GIVEN = 1
    SIGNAL = 2  # released by a thread that had not acquired it: nobody "holds" it


class State(IntEnum):
    """What a sampled thread was doing (STATE.state)."""

    RUNNABLE = 1  # on a CPU, or waiting for one
    AWAITS_GIL = 2
    AWAITS_LOCK = 3  # asleep on a lock or condition of the C library
    BLOCKED = 4  # in a system call; STATE.call says which


class Call(IntEnum):
    """The kind of system call a thread was blocked in (STATE.call)."""

    OTHER = 1
    SLEEP = 2  # time.sleep
    NATIVE_SLEEP = 3  # a sleep of native code's own
    READ = 4
    WRITE = 5
    SOCKET = 6  # receive, send, accept, connect
    POLL = 7  # poll, select, epoll
    PROCESS = 8  # waiting for a child
    FILE_LOCK = 9  # flock, fcntl


class HoldFlag(IntEnum):
    """Bits of HOLD.flags."""

    HANDED_OFF = 1  # released by another thread than acquired
    OPEN = 2  # still held when the recording stopped
    UNCONTENDED = 4  # nobody waited for it
    WATCHED = 8  # somebody waited on a condition of the lock meanwhile


HEADER: Final = np.dtype(
    [
        ("magic", "S8"),
        ("major", "<u2"),
        ("minor", "<u2"),
        ("header_bytes", "<u4"),
        ("start_unix_ns", "<u8"),
        ("mono_ns", "<u8"),
        ("pid", "<u4"),
        ("level", "u1"),
        ("clock", "u1"),
        ("reserved", "<u2"),
        ("ticks_per_ns", "<f8"),
        ("reserved2", "<u4", (3,)),
        ("crc32", "<u4"),
    ]
)
CHUNK: Final = np.dtype(
    [
        ("magic", "<u4"),
        ("kind", "<u2"),
        ("record_bytes", "<u2"),
        ("payload_bytes", "<u4"),
        ("count", "<u4"),
        ("thread", "<u4"),
        ("sequence", "<u4"),
        ("reserved", "<u4"),
        ("crc32", "<u4"),
    ]
)
FRAME: Final = np.dtype([("id", "<u4"), ("code", "<u4"), ("line", "<u4"), ("lasti", "<u4")])
WAIT: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("spin_ns", "<u8"),
        ("park_ns", "<u8"),
        ("gil_ns", "<u8"),
        ("spin_cpu_ns", "<u8"),
        ("lock", "<u4"),
        ("thread", "<u4"),
        ("stack", "<u4"),
        ("holder", "<u4"),
        ("holder_site", "<u4"),
        ("spins", "<u4"),
        ("outcome", "u1"),
        ("kind", "u1"),
        ("flags", "<u2"),
        ("waiters", "<u4"),
        ("holder_stack", "<u4"),
        ("awaited_stack", "<u4"),
        ("gil_before_ns", "<u8"),
    ]
)
HOLD: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("cpu_ns", "<u8"),
        ("lock", "<u4"),
        ("thread", "<u4"),
        ("site", "<u4"),
        ("stack", "<u4"),
        ("waiters", "<u4"),
        ("release_thread", "<u4"),
        ("flags", "<u4"),
        ("preemptions", "<u4"),
    ]
)
SHORT_HOLD: Final = np.dtype(
    [("start_ns", "<u8"), ("hold_ns", "<u4"), ("lock", "<u4"), ("site", "<u4")]
)
COUNTER: Final = np.dtype(
    [
        ("lock", "<u4"),
        ("thread", "<u4"),
        ("acquires", "<u8"),
        ("contended", "<u8"),
        ("timed_out", "<u8"),
        ("failed_tries", "<u8"),
        ("interrupted", "<u8"),
        ("recursions", "<u8"),
        ("blocking_holds", "<u8"),
        ("wait_ns", "<u8"),
        ("spin_ns", "<u8"),
        ("park_ns", "<u8"),
        ("gil_ns", "<u8"),
        ("spin_cpu_ns", "<u8"),
        ("spins", "<u8"),
        ("hold_ns", "<u8"),
        ("max_wait_ns", "<u8"),
        ("max_hold_ns", "<u8"),
        ("hold_histogram", "<u8", (HISTOGRAM_BUCKETS,)),
    ]
)
STATUS: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("bytes_written", "<u8"),
        ("waits", "<u8"),
        ("holds", "<u8"),
        ("dropped_waits", "<u8"),
        ("dropped_holds", "<u8"),
        ("dropped_stacks", "<u8"),
        ("writer_cpu_ns", "<u8"),
        ("process_cpu_ns", "<u8"),
        ("self_ns", "<u8"),
        ("clock_error_ns", "<i8"),
        ("threads_alive", "<u4"),
        ("flags", "<u4"),
    ]
)
GIL_SAMPLE: Final = np.dtype([("time_ns", "<u8"), ("holder", "<u4"), ("flags", "<u4")])
LOOP_STEP: Final = np.dtype(
    [
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("thread", "<u4"),
        ("task", "<u4"),
        ("stack", "<u4"),
        ("ready", "<u4"),
        ("victim", "<u4"),
        ("victim_stack", "<u4"),
        ("reserved", "<u4", (2,)),
    ]
)
ORDER: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("thread", "<u4"),
        ("group", "<u4"),
        ("lock", "<u4"),
        ("stack", "<u4"),
        ("held", "<u4"),
        ("held_site", "<u4"),
        ("flags", "<u4"),
        ("reserved", "<u4"),
    ]
)
STATE: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("cpu_ns", "<u8"),
        ("delay_ns", "<u8"),
        ("thread", "<u4"),
        ("stack", "<u4"),
        ("state", "<u2"),
        ("call", "<u2"),
        ("reserved", "<u4"),
    ]
)
LOAD: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("threads", "<u4"),
        ("runnable", "<u4"),
        ("native_threads", "<u4"),
        ("native_runnable", "<u4"),
        ("native_cpu_ns", "<u8"),
        ("delay_ns", "<u8"),
        ("involuntary", "<u8"),
        ("voluntary", "<u8"),
    ]
)
FIXED_RECORDS: Final = {
    ChunkKind.FRAMES: FRAME,
    ChunkKind.WAITS: WAIT,
    ChunkKind.HOLDS: HOLD,
    ChunkKind.SHORT_HOLDS: SHORT_HOLD,
    ChunkKind.COUNTERS: COUNTER,
    ChunkKind.STATUS: STATUS,
    ChunkKind.END: STATUS,
    ChunkKind.GIL: GIL_SAMPLE,
    ChunkKind.LOOP_STEPS: LOOP_STEP,
    ChunkKind.ORDER: ORDER,
    ChunkKind.STATES: STATE,
    ChunkKind.LOAD: LOAD,
    ChunkKind.BLOCKING: BLOCKING,
    ChunkKind.GIL_WAITS: GIL_WAIT,
    ChunkKind.GIL_HOLDS: GIL_HOLD,
    ChunkKind.GIL_RUNS: GIL_RUN,
    ChunkKind.GIL_TOTALS: GIL_TOTAL,
    ChunkKind.NATIVE_WAITS: NATIVE_WAIT,
    ChunkKind.SAMPLES: SAMPLE,
}
"""Chunk kinds whose payload is an array of one dtype."""
LAYER_KINDS: Final = (
    ChunkKind.BLOCKING,
    ChunkKind.GIL_WAITS,
    ChunkKind.GIL_HOLDS,
    ChunkKind.GIL_TOTALS,
    ChunkKind.NATIVE_WAITS,
)
"""Those that the layer below Python brings."""
EVENT_KINDS: Final = (*LAYER_KINDS, ChunkKind.SAMPLES)
"""All that are kept as they are, by kind."""
