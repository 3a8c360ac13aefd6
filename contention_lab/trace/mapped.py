"""Memory of mapped files that is needed no more.

Pages of a mapped file count as memory of the process for as long as it does not say otherwise. A
trace is read once or a few times from front to back, and what is kept of it is copied; so pages go
back when they have been read. They can be read again: then they are fetched again, from the
system's cache of files.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def let_go(part: memoryview | npt.NDArray[Any]) -> None:
    """Give back the pages under a window of a mapped file; of other memory, do nothing.

    Parameters
    ----------
    part
        The window. It stays usable.
    """
    owner = part.obj if isinstance(part, memoryview) else part.base
    while isinstance(owner, memoryview | np.ndarray):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    if not isinstance(owner, mmap.mmap) or not hasattr(owner, "madvise"):
        return
    window = np.frombuffer(part, dtype=np.uint8) if isinstance(part, memoryview) else part
    if not window.size:
        return
    start = _address(window) - _address(np.frombuffer(owner, dtype=np.uint8))
    length = window.size * window.strides[0]
    begin = start - start % mmap.PAGESIZE
    owner.madvise(mmap.MADV_DONTNEED, begin, min(start + length, len(owner)) - begin)


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
