"""Where kernels run: a backend takes a function of arrays and gives back a handle of its result.

It knows nothing of gradients.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Handle: TypeAlias = Array | Future[Array]


class Backend:
    """Kernels run at once on the calling thread: it pays for them, even while it holds a lock.

    So does a CPU library. A handle is then simply the array; `streams` has a backend that queues.
    """

    def call(self, kernel: Callable[..., Array], *operands: Handle) -> Handle:
        """Run `kernel` on the operands' arrays, now or later; return a handle of the result."""
        return kernel(*operands)

    def read(self, handle: Handle) -> Array:
        """Wait for the result behind `handle` and return it, or raise what its kernel raised."""
        return np.asarray(handle)

    def close(self) -> None:
        """Stop what runs in the background, which is nothing here."""
