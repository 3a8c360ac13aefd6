"""Where a symbol of a program or library is, from its ELF file: no debugger, no tool.

It reads the tables of 64-bit little-endian files only, which is what Linux runs Python on.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_LOAD: Final = 1
_TABLES: Final = (11, 2)  # .dynsym, .symtab
_MAGIC: Final = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol's place in the image as it is loaded.

    Attributes
    ----------
    offset
        From the address at which the first loaded segment would begin at 0.
    size
        In bytes.
    """

    offset: int
    size: int


def find_symbol(path: Path, name: str) -> Symbol | None:
    """Return where a symbol is in a file; None if it has none, or is no such file."""
    wanted = name.encode()
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _find(data, wanted)
    except (OSError, ValueError, struct.error):
        return None


def _find(data: mmap.mmap, wanted: bytes) -> Symbol | None:
    header = _HEADER.unpack_from(data, 0)
    if not header[0].startswith(_MAGIC):
        return None
    program_at, section_at, segments, sections = header[5], header[6], header[10], header[12]
    loads = [_PROGRAM.unpack_from(data, program_at + i * _PROGRAM.size) for i in range(segments)]
    base = min((load[3] for load in loads if load[0] == _LOAD), default=0)
    tables = [_SECTION.unpack_from(data, section_at + i * _SECTION.size) for i in range(sections)]
    for kind in _TABLES:
        for table in tables:
            if table[1] == kind and table[6] < len(tables):
                found = _in_table(data, table, tables[table[6]], wanted)
                if found is not None:
                    return Symbol(found.offset - base, found.size)
    return None


def _in_table(
    data: mmap.mmap, table: tuple[int, ...], strings: tuple[int, ...], wanted: bytes
) -> Symbol | None:
    names = data[strings[4] : strings[4] + strings[5]]
    at = names.find(b"\0" + wanted + b"\0") + 1
    if not at:
        return None
    symbols = data[table[4] : table[4] + table[5]]
    for name, _, _, section, value, size in _SYMBOL.iter_unpack(symbols):
        if name == at and section:
            return Symbol(value, size)
    return None
