"""Native locks and stacks come back from a file, and are summed up by lock."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from contention_lab.analysis.native_locks import native_locks
from contention_lab.trace import ChunkKind, Trace, TraceBuilder, parse
from contention_lab.trace.chunk import pack_chunk
from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

MS = 1_000_000


def named(number: int, second: int, third: int, symbol: str, library: str) -> bytes:
    """Return a record of a lock or a frame."""
    texts = [symbol.encode(), library.encode()]
    return struct.pack("<IIQII", number, second, third, *map(len, texts)) + b"".join(texts)


def stacks(*lists: list[int]) -> bytes:
    """Return records of stacks, numbered from 1."""
    words = [w for number, ids in enumerate(lists, 1) for w in (number, len(ids), *ids)]
    return np.array(words, dtype="<u4").tobytes()


def trace_of(builder: TraceBuilder, *chunks: tuple[ChunkKind, bytes, int]) -> Trace:
    """Return a trace with chunks before those of the builder."""
    whole = builder.bytes()
    head, rest = whole[:64], whole[64:]
    first = b"".join(
        pack_chunk(kind, payload, count=count, sequence=number, record_bytes=0, thread=0)
        for number, (kind, payload, count) in enumerate(chunks)
    )
    return parse(head + first + renumbered(rest, len(chunks)))


def renumbered(data: bytes, by: int) -> bytes:
    """Return chunks whose sequence begins later."""
    at, parts = 0, []
    while at < len(data):
        _, kind, size, length, count, thread, sequence, _, _ = struct.unpack_from(
            "<IHHIIIIII", data, at
        )
        payload = data[at + 32 : at + 32 + length]
        parts.append(
            pack_chunk(
                ChunkKind(kind),
                payload,
                count=count,
                sequence=sequence + by,
                record_bytes=size,
                thread=thread,
            )
        )
        at += 32 + (length + 7) // 8 * 8
    return b"".join(parts)


@pytest.fixture
def sqlite() -> Trace:
    """Return a trace of two threads that wait for a mutex in a library, and one that is joined."""
    builder = TraceBuilder()
    thread = builder.add_thread("worker")
    query = builder.add_stack(builder.add_frame("query", "/app/service.py", 7))
    common = {"thread": thread, "native_id": 11}
    add = builder.add_layer_event
    kind = ChunkKind.NATIVE_WAITS
    add(kind, lock=1, start_ns=0, end_ns=4 * MS, stack=query, native_stack=1, **common)
    add(kind, lock=1, start_ns=5 * MS, end_ns=6 * MS, native_id=12)
    release = int(NativeWaitFlag.RELEASE)
    add(kind, lock=1, start_ns=4 * MS, end_ns=4 * MS, flags=release, native_stack=1, **common)
    add(kind, lock=2, start_ns=0, end_ns=9 * MS, native_stack=2, **common)
    add(kind, lock=3, start_ns=0, end_ns=2 * MS, **common)
    locks = [
        named(1, NativeKind.MUTEX, 0x1000, "sqlite3_step", "/lib/libsqlite3.so.0"),
        named(2, NativeKind.SEMAPHORE, 0x2000, "x", "/lib/libpython3.13.so.1.0"),
        named(3, NativeKind.COND, 0x3000, "", ""),
    ]
    frames = [
        named(1, 0, 0x10, "sqlite3_step", "/lib/libsqlite3.so.0"),
        named(2, 1, 0x20, "PyInit__sqlite3", "/lib/_sqlite3.so"),
        named(3, 0, 0x30, "_PyMutex_LockSlow", "/lib/libpython3.13.so.1.0"),
        named(4, 0, 0x40, "", ""),
    ]
    return trace_of(
        builder,
        (ChunkKind.NATIVE_LOCKS, b"".join(locks), 3),
        (ChunkKind.NATIVE_FRAMES, b"".join(frames), 4),
        (ChunkKind.NATIVE_STACKS, stacks([1, 2], [4, 3]), 2),
    )


def test_locks_and_stacks_come_back(sqlite: Trace) -> None:
    assert sqlite.problems == ()
    assert sqlite.native.locks[1].label == "libsqlite3.so.0: sqlite3_step"
    assert sqlite.native.locks[1].kind.type_name == "pthread_mutex"
    assert sqlite.native.locks[3].label == "program"
    labels = [frame.label for frame in sqlite.native_stack(1)]
    assert labels == ["libsqlite3.so.0: sqlite3_step", "_sqlite3.so: ~PyInit__sqlite3"]
    assert sqlite.native_stack(2)[0].label == "program+0x40"
    assert sqlite.native_stack(9) == ()


def test_waits_are_summed_by_lock_the_longest_first(sqlite: Trace) -> None:
    rows = native_locks(sqlite)

    assert [row.lock.id for row in rows] == [2, 1, 3]
    mutex = rows[1]
    assert (mutex.waits, mutex.wait_s, mutex.longest_s) == (2, 0.005, 0.004)
    assert [(site.function if site else None, s) for site, s in mutex.victims] == [
        ("query", 0.004),
        (None, 0.001),
    ]
    assert [(frame.symbol, count) for frame, count in mutex.holders] == [("sqlite3_step", 1)]


def test_the_interpreters_locks_have_names_in_words(sqlite: Trace) -> None:
    texts = [row.text for row in native_locks(sqlite)]

    assert texts == ["a lock inside the interpreter", "libsqlite3.so.0: sqlite3_step", "program"]


def test_waiting_for_others_is_told_apart(sqlite: Trace) -> None:
    assert [row.for_others for row in native_locks(sqlite)] == [False, False, True]


@pytest.mark.parametrize(
    ("kind", "payload", "count"),
    [
        (ChunkKind.NATIVE_LOCKS, named(1, 1, 0, "a", "b")[:-1], 1),
        (ChunkKind.NATIVE_FRAMES, named(1, 1, 0, "a", "b"), 2),
        (ChunkKind.NATIVE_STACKS, b"\x01\0\0\0\xff\xff\xff\x7f", 1),
        (ChunkKind.NATIVE_LOCKS, named(0, 9, 0, "a", "b"), 1),
        (ChunkKind.NATIVE_FRAMES, named(1, 0, 0, "a", "b") * 2, 2),
        (ChunkKind.NATIVE_STACKS, stacks([1], [2])[:12] * 2, 2),
    ],
)
def test_damage_is_told_and_left_out(kind: ChunkKind, payload: bytes, count: int) -> None:
    trace = trace_of(TraceBuilder(), (kind, payload, count))

    assert trace.problems
    assert not native_locks(trace)
