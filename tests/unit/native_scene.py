"""Traces with locks and stacks of native code, made by hand."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.trace import ChunkKind, Trace, TraceBuilder, parse
from contention_lab.trace.chunk import pack_chunk
from contention_lab.trace.layer_schema import NativeWaitFlag

if TYPE_CHECKING:
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
    return parse(file_of(builder, *chunks))


def file_of(builder: TraceBuilder, *chunks: tuple[ChunkKind, bytes, int]) -> bytes:
    """Return a file with chunks before those of the builder."""
    whole = builder.bytes()
    head, rest = whole[:64], whole[64:]
    first = b"".join(
        pack_chunk(kind, payload, count=count, sequence=number, record_bytes=0, thread=0)
        for number, (kind, payload, count) in enumerate(chunks)
    )
    return head + first + renumbered(rest, len(chunks))


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


class NativeScene:
    """A Python program whose threads wait in native code; times in milliseconds."""

    def __init__(self, *, cores: int = 4, duration_ms: int = 1000) -> None:
        meta = {"machine": {"cores": cores}, "python": {"gil": True}, "native_layer": True}
        self.builder = TraceBuilder(meta=meta, duration_ns=duration_ms * MS)
        self._locks: list[bytes] = []
        self._frames: list[bytes] = []
        self._stacks: list[list[int]] = []

    def lock(self, kind: NativeKind, symbol: str, library: str) -> int:
        """Return the id of a new lock."""
        number = len(self._locks) + 1
        self._locks.append(named(number, kind, 0x1000 * number, symbol, library))
        return number

    def native_stack(self, *functions: tuple[str, str]) -> int:
        """Return the id of a stack of functions and their libraries, innermost first."""
        first = len(self._frames) + 1
        for number, (symbol, library) in enumerate(functions, first):
            self._frames.append(named(number, 0, number, symbol, library))
        self._stacks.append([*range(first, first + len(functions))])
        return len(self._stacks)

    def thread(self, name: str) -> int:
        """Return the id of a new thread; its native id is the same number."""
        return self.builder.add_thread(name)

    def stack(self, function: str, line: int) -> int:
        """Return the id of a Python stack of one function."""
        return self.builder.add_stack(self.builder.add_frame(function, "/app/service.py", line))

    def wait(self, lock: int, thread: int, start_ms: float, end_ms: float, **values: int) -> None:
        """Add a wait."""
        self._event(lock, thread, start_ms, end_ms, values)

    def release(self, lock: int, thread: int, at_ms: float, **values: int) -> None:
        """Add a release while others wait."""
        values["flags"] = int(NativeWaitFlag.RELEASE)
        self._event(lock, thread, at_ms, at_ms, values)

    def _event(
        self, lock: int, thread: int, start_ms: float, end_ms: float, values: dict[str, int]
    ) -> None:
        times = {"start_ns": int(start_ms * MS), "end_ns": int(end_ms * MS)}
        fields = {"lock": lock, "thread": thread, "native_id": thread, **times, **values}
        self.builder.add_layer_event(ChunkKind.NATIVE_WAITS, **fields)

    def trace(self) -> Trace:
        """Return the trace."""
        return parse(self.bytes())

    def bytes(self) -> bytes:
        """Return the trace's file."""
        return file_of(
            self.builder,
            (ChunkKind.NATIVE_LOCKS, b"".join(self._locks), len(self._locks)),
            (ChunkKind.NATIVE_FRAMES, b"".join(self._frames), len(self._frames)),
            (ChunkKind.NATIVE_STACKS, stacks(*self._stacks), len(self._stacks)),
        )
