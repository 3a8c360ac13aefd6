"""The build id of a file of native code: by it one knows whether it still is the file recorded.

It reads 64-bit ELF files of this machine's byte order, and never fails: what is no such file has no
build id.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC: Final = b"\x7fELF\x02\x01"
_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_NOTE: Final = struct.Struct("<III")
_IS_NOTE: Final = 4
_IS_BUILD_ID: Final = 3
_LONGEST: Final = 1 << 16
"""Notes of more bytes are none that a linker makes."""


def build_id(path: str) -> str | None:
    """Return the build id in hexadecimal digits.

    Parameters
    ----------
    path
        A file.

    Returns
    -------
    str or None
        Empty if the file has none; None if there is no such file, or it is no program or library.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or not head.startswith(_MAGIC):
                return None
            _, _, _, _, at, _, _, _, size, count, *_ = _HEADER.unpack(head)
            if size != _PROGRAM.size:
                return None
            file.seek(at)
            table = file.read(size * count)
            for kind, _, offset, _, _, length, *_ in _PROGRAM.iter_unpack(
                table[: len(table) // size * size]
            ):
                if kind == _IS_NOTE and length <= _LONGEST:
                    file.seek(offset)
                    for found in _build_ids(file.read(length)):
                        return found
    except (OSError, ValueError):
        return None
    return ""


def _build_ids(notes: bytes) -> Iterator[str]:
    at = 0
    while at + _NOTE.size <= len(notes):
        name_bytes, bytes_, kind = _NOTE.unpack_from(notes, at)
        name = at + _NOTE.size
        text = name + (name_bytes + 3) // 4 * 4
        if kind == _IS_BUILD_ID and notes[name : name + name_bytes] == b"GNU\0":
            yield notes[text : text + bytes_].hex()
        at = text + (bytes_ + 3) // 4 * 4
