"""The framing of a trace file: its header and its chunks, packed and found again.

It knows nothing of what chunks hold. A reader must survive any bytes, so nothing here allocates
by a length it has only read: payloads are windows of the file.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.trace.schema import (
    ALIGNMENT,
    CHUNK,
    CHUNK_MAGIC,
    HEADER,
    MAGIC,
    MAJOR,
    MAX_CHUNK_BYTES,
    MINOR,
    ChunkKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk whose checksum is right.

    Attributes
    ----------
    number
        Its place in the file, from 0.
    offset
        Where its header starts, in bytes.
    kind, record_bytes, count, thread
        As in its header; `kind` may be one this version does not know.
    payload
        A window of the file.
    """

    number: int
    offset: int
    kind: int
    record_bytes: int
    count: int
    thread: int
    payload: memoryview

    @property
    def label(self) -> str:
        """How messages call it: `chunk 3 (WAITS) at byte 4096`."""
        name = ChunkKind(self.kind).name if self.kind in list(ChunkKind) else f"kind {self.kind}"
        return f"chunk {self.number} ({name}) at byte {self.offset}"


def pack_header(
    *,
    start_unix_ns: int,
    mono_ns: int,
    pid: int,
    level: int,
    clock: int,
    ticks_per_ns: float = 1.0,
    major: int = MAJOR,
    minor: int = MINOR,
) -> bytes:
    """Return the 64 bytes a file starts with."""
    header = np.zeros((), dtype=HEADER)
    header["magic"] = MAGIC
    header["major"] = major
    header["minor"] = minor
    header["header_bytes"] = HEADER.itemsize
    header["start_unix_ns"] = start_unix_ns
    header["mono_ns"] = mono_ns
    header["pid"] = pid
    header["level"] = level
    header["clock"] = clock
    header["ticks_per_ns"] = ticks_per_ns
    header["crc32"] = zlib.crc32(header.tobytes()[:-4])
    return header.tobytes()


def pack_chunk(
    kind: int, payload: bytes, *, count: int, sequence: int, record_bytes: int = 0, thread: int = 0
) -> bytes:
    """Return a chunk: its header, the payload and the zeros after it.

    Raises
    ------
    ValueError
        The payload is longer than a chunk may be.
    """
    if len(payload) > MAX_CHUNK_BYTES:
        raise ValueError(f"a payload of {len(payload)} bytes is over {MAX_CHUNK_BYTES}: split it")
    header = np.zeros((), dtype=CHUNK)
    header["magic"] = CHUNK_MAGIC
    header["kind"] = kind
    header["record_bytes"] = record_bytes
    header["payload_bytes"] = len(payload)
    header["count"] = count
    header["thread"] = thread
    header["sequence"] = sequence
    header["crc32"] = zlib.crc32(payload, zlib.crc32(header.tobytes()[:-4]))
    return header.tobytes() + payload + bytes(-len(payload) % ALIGNMENT)


def chunks(data: memoryview, start: int, problems: list[str]) -> Iterator[Chunk]:
    """Yield the chunks of a file up to its end or the first damage.

    Parameters
    ----------
    data
        The whole file.
    start
        Where the first chunk starts, in bytes.
    problems
        Gets a sentence if there is damage.
    """
    offset = start
    number = 0
    while offset < len(data):
        damage = _damage(data, offset)
        if damage:
            problems.append(
                f"chunk {number} at byte {offset} {damage}; "
                f"the last {len(data) - offset} bytes are not read"
            )
            return
        header = np.frombuffer(data, dtype=CHUNK, count=1, offset=offset)[0]
        if int(header["sequence"]) != number:
            problems.append(
                f"chunk {number} at byte {offset} calls itself number {header['sequence']}: "
                "chunks are missing or out of order; the rest is not read"
            )
            return
        begin = offset + CHUNK.itemsize
        end = begin + int(header["payload_bytes"])
        yield Chunk(
            number=number,
            offset=offset,
            kind=int(header["kind"]),
            record_bytes=int(header["record_bytes"]),
            count=int(header["count"]),
            thread=int(header["thread"]),
            payload=data[begin:end],
        )
        offset = end + -(end - begin) % ALIGNMENT
        number += 1


def _damage(data: memoryview, offset: int) -> str:
    """Return what is wrong with the chunk at an offset, or nothing."""
    left = len(data) - offset
    if left < CHUNK.itemsize:
        return "is cut inside its header"
    header = np.frombuffer(data, dtype=CHUNK, count=1, offset=offset)[0]
    if int(header["magic"]) != CHUNK_MAGIC:
        return "does not start like a chunk"
    size = int(header["payload_bytes"])
    if size > MAX_CHUNK_BYTES:
        return f"claims {size} bytes, more than a chunk may have"
    if left < CHUNK.itemsize + size:
        return f"is cut: {left - CHUNK.itemsize} of {size} bytes are there"
    begin = offset + CHUNK.itemsize
    crc = zlib.crc32(data[begin : begin + size], zlib.crc32(data[offset : begin - 4]))
    if crc != int(header["crc32"]):
        return "has a wrong checksum"
    return ""
