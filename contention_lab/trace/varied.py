"""Payloads whose records have lengths of their own: names, and lists of numbers.

It knows how long they are, not what they mean. A record that does not fit into its payload ends the
chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import struct
    from collections.abc import Iterator

    from contention_lab.trace.chunk import Chunk

DEPTH_MASK: Final = 0x7FFF_FFFF


class MalformedError(Exception):
    """A record does not fit into its payload, or its text is not what it should be."""


def varied_records(
    chunk: Chunk, head: struct.Struct, texts: int
) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Yield head and texts of records whose last `texts` fields are the lengths of texts."""
    payload = chunk.payload
    at = read = 0
    while at < len(payload):
        if at + head.size > len(payload):
            raise MalformedError(f"ends inside record number {read}")
        numbers = head.unpack_from(payload, at)
        at += head.size
        sizes = numbers[-texts:]
        if at + sum(sizes) > len(payload):
            raise MalformedError(f"ends inside record number {read}")
        decoded = []
        for size in sizes:
            decoded.append(_text(bytes(payload[at : at + size])))
            at += size
        yield numbers, decoded
        read += 1
    _compare(read, chunk.count)


def word_lists(chunk: Chunk) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield id, depth with its flag, and the numbers of records of an id and so many numbers."""
    payload = chunk.payload
    words = np.frombuffer(payload, dtype="<u4", count=len(payload) // 4)
    at = read = 0
    while at < len(words):
        if at + 2 > len(words) or at + 2 + (int(words[at + 1]) & DEPTH_MASK) > len(words):
            raise MalformedError(f"ends inside stack number {read}")
        number, depth = int(words[at]), int(words[at + 1])
        end = at + 2 + (depth & DEPTH_MASK)
        yield number, depth, tuple(words[at + 2 : end].tolist())
        at = end
        read += 1
    if len(payload) % 4:
        raise MalformedError("has bytes after its last stack")
    _compare(read, chunk.count)


def _compare(read: int, count: int) -> None:
    if read != count:
        raise MalformedError(f"holds {read} records and claims {count}")


def _text(raw: bytes) -> str:
    """Decode a name; what is not UTF-8 (also a lone surrogate) becomes a visible escape."""
    return raw.decode("utf-8", "backslashreplace")
