"""Whole numbers as text that is short in a page: LEB128 bytes, seven bits each, in base64.

Small numbers take one byte, so columns are written as differences where they ascend. The script's
`packed_integers.js` reads them back.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST: Final = (1 << 53) - 1
"""Numbers of the script are exact up to here."""
_BITS: Final = 7
_MOST_BYTES: Final = 8


def packed(numbers: npt.NDArray[np.integer[Any]]) -> str:
    """Return the text of numbers from 0 to `LARGEST`.

    Raises
    ------
    ValueError
        A number is out of range.
    """
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) > LARGEST):
        raise ValueError("only numbers from 0 to 2^53 - 1 can be packed")
    left = numbers.astype(np.uint64)
    length = np.ones(len(left), dtype=np.int64)
    for byte in range(1, _MOST_BYTES):
        length += left >= np.uint64(1 << (_BITS * byte))
    begin = np.cumsum(length) - length
    found = np.zeros(int(length.sum()), dtype=np.uint8)
    for byte in range(_MOST_BYTES):
        there = np.flatnonzero(length > byte)
        more = (length[there] > byte + 1).astype(np.uint8) << _BITS
        bits = (left[there] >> np.uint64(_BITS * byte)) & np.uint64((1 << _BITS) - 1)
        found[begin[there] + byte] = bits.astype(np.uint8) | more
    return base64.b64encode(found.tobytes()).decode()


def packed_steps(ascending: npt.NDArray[np.integer[Any]]) -> str:
    """Return the text of ascending numbers from 0: the first one, and what is added each time."""
    steps = ascending.astype(np.int64)
    steps[1:] -= ascending[:-1]
    return packed(steps)
