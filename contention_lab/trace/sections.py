"""What `builder.py` makes chunks of: records packed together, up to a size.

It gives no ids and keeps nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.trace.schema import FRAME, ChunkKind
from contention_lab.trace.tables import CODE, STACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.trace.records import Records

TRUNCATED: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Section:
    """What one chunk holds."""

    kind: ChunkKind
    payload: bytes
    count: int
    record_bytes: int = 0
    thread: int = 0


def varying(kind: ChunkKind, records: list[bytes], limit: int) -> Iterator[Section]:
    """Yield sections of records of their own lengths, of `limit` bytes or one record."""
    batch: list[bytes] = []
    size = 0
    for record in records:
        if batch and size + len(record) > limit:
            yield Section(kind, b"".join(batch), len(batch))
            batch, size = [], 0
        batch.append(record)
        size += len(record)
    if batch:
        yield Section(kind, b"".join(batch), len(batch))


def fixed(kind: ChunkKind, records: Records, limit: int, thread: int = 0) -> Iterator[Section]:
    """Yield sections of records of one length, of `limit` bytes or one record."""
    size = records.dtype.itemsize
    step = max(1, limit // size)
    for at in range(0, len(records), step):
        part = records[at : at + step]
        yield Section(kind, part.tobytes(), len(part), size, thread)


def code_records(codes: Mapping[tuple[str, str, int], int]) -> list[bytes]:
    """Return records of code objects: function, file and first line, by id."""
    records = []
    for (function, filename, first_line), number in codes.items():
        texts = [encoded(function), encoded(filename)]
        records.append(CODE.pack(number, first_line, *map(len, texts)) + b"".join(texts))
    return records


def frame_records(frames: Mapping[tuple[int, int, int], int]) -> Records:
    """Return records of frames: code object, line and instruction, by id."""
    rows = [(number, *place) for place, number in frames.items()]
    return np.array(rows, dtype=FRAME)


def stack_records(stacks: Mapping[tuple[tuple[int, ...], bool], int]) -> list[bytes]:
    """Return records of stacks: frames, and whether some are missing, by id."""
    return [
        STACK.pack(number, len(frames) | TRUNCATED * truncated)
        + np.array(frames, dtype="<u4").tobytes()
        for (frames, truncated), number in stacks.items()
    ]


def joined(parts: list[Records], dtype: np.dtype[np.void]) -> Records:
    """Return the parts as one array."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def encoded(text: str) -> bytes:
    """Return a text as the file has it."""
    return text.encode("utf-8", "surrogatepass")
