"""Cells of a notebook: what people call them, and their text, where a recording keeps it.

The code of a cell has a file that does not exist, with a name such as `<ipython-input-3-3c60…>` or
`/tmp/ipykernel_71/2871.py`. People know it as `In [3]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def cell_names(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return what the cells of a recording are called, by the names of their files."""
    return {file: name for file, name, _ in _cells(meta)}


def cell_texts(metas: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the texts of the cells whose text recordings keep, by what they are called.

    Of cells that are called the same, as those of two kernels may be, none has a text.
    """
    found: dict[str, str] = {}
    odd = set()
    for _, name, text in (cell for meta in metas for cell in _cells(meta)):
        if text and found.setdefault(name, text) != text:
            odd.add(name)
    return {name: text for name, text in found.items() if name not in odd}


def _cells(meta: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield file, name and text (perhaps empty) of each cell that is described as it should be."""
    cells = meta.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, dict):
            file, name, text = (cell.get(key, "") for key in ("file", "name", "text"))
            if isinstance(file, str) and isinstance(name, str) and isinstance(text, str) and name:
                yield file, name, text
