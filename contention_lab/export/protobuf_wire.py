"""The wire format of protocol buffers, as far as a profile needs it: integers, bytes, messages.

See https://protobuf.dev/programming-guides/encoding/. It knows no schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def varint(value: int) -> bytes:
    """Return an integer of 0 to 2^64 - 1 in groups of seven bits, the lowest first."""
    if value < 0x80:
        return bytes((value,))
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def integer(field: int, value: int) -> bytes:
    """Return an integer field; 0, the default, takes no bytes. Negative ones as 64 bits."""
    return varint(field << 3) + varint(value & 0xFFFFFFFFFFFFFFFF) if value else b""


def block(field: int, payload: bytes) -> bytes:
    """Return a field of bytes, of text in UTF-8, or of an encoded message."""
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a repeated integer field in its packed form."""
    payload = b"".join(map(varint, values))
    return block(field, payload) if payload else b""
